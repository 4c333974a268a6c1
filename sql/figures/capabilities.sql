-- name: criteria
-- The criteria of each leaf of the trees, those that the models shown handle
-- worst first, under the main judge; at most $most_criteria of a leaf.
with handled as (
    select shown_verdicts.task_id, shown_verdicts.criterion_id, avg(shown_verdicts.value) as value
    from shown_verdicts
    where judging = $main and not is_older
    group by shown_verdicts.task_id, shown_verdicts.criterion_id
)

select members.node_id, members.task_id, members.criterion_id, criteria.title, criteria.weight,
    if(criteria.weight < 0, 1 - handled.value, handled.value) as handled
from capability_members as members
inner join capability_nodes as nodes
    on members.tree_id = nodes.tree_id and members.node_id = nodes.node_id
inner join criteria
    on members.benchmark = criteria.benchmark
        and members.dataset_revision = criteria.dataset_revision
        and members.task_id = criteria.task_id
        and members.criterion_id = criteria.criterion_id
left join handled
    on members.task_id = handled.task_id and members.criterion_id = handled.criterion_id
where members.benchmark = $benchmark and members.dataset_revision = $revision and members.is_leaf
qualify
    row_number() over (
        partition by members.node_id
        order by handled nulls last, members.task_id, members.criterion_id
    )
    <= $most_criteria
order by members.node_id, handled nulls last, members.task_id, members.criterion_id;

-- name: nodes
-- The nodes of the trees of capabilities, parents before their children.
select node_id, parent_id, field, level, coalesce(name, '(no name)') as name, n_criteria, n_tasks
from capability_nodes
where benchmark = $benchmark and dataset_revision = $revision
order by field, position;

-- name: capability_scores
-- The score of each model in each node of the trees, under each judge.
select judgings.judging,
    entries.entry as model,
    scores.field, scores.level,
    coalesce(scores.name, '(no name)') as capability,
    scores.value, scores.ci_low, scores.ci_high, scores.is_small, scores.n_tasks, scores.n_criteria,
    scores.n_decided, scores.node_id
from capability_scores as scores
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where scores.benchmark = $benchmark and scores.dataset_revision = $revision
order by scores.field, scores.level, capability, scores.node_id, judgings.judging <> $main,
    judgings.judging, scores.value desc, entries.entry;

-- name: weaknesses
-- The confirmed weaknesses of each model under each judge: beside its own other
-- criteria first, the largest difference first.
select judgings.judging,
    entries.entry as model,
    weaknesses.field,
    coalesce(weaknesses.name, '(no name)') as capability,
    coalesce(weaknesses.compared_model, 'its other criteria') as compared_with,
    weaknesses.value, weaknesses.compared_value,
    weaknesses.gap as difference,
    weaknesses.gap_ci_low as difference_low,
    weaknesses.gap_ci_high as difference_high,
    weaknesses.p_confirmed, weaknesses.n_tasks, weaknesses.is_small, weaknesses.found_gap,
    weaknesses.p_found, weaknesses.n_tasks_found, weaknesses.node_id
from weaknesses
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where weaknesses.benchmark = $benchmark and weaknesses.dataset_revision = $revision
order by judgings.judging <> $main, judgings.judging, weaknesses.compared_model is not null,
    entries.entry, weaknesses.compared_model, weaknesses.gap, weaknesses.node_id;
