-- name: criteria
-- The criteria of each leaf of the trees, under the main judge, those with the
-- worst results of the shown models first; at most $most_criteria of a leaf.
--
-- with: revision/revision_capability_members, figures/shared/shown_verdicts
with judged as (
    select task_id, criterion_id, avg(value) as value
    from shown_verdicts
    where judge_config = $main and not is_older
    group by all
)

select
    node_id,
    task_id,
    criterion_id,
    title,
    weight,
    -- How well the models handle it: they should not meet one with a negative weight.
    if(weight < 0, 1 - judged.value, judged.value) as handled
from revision_capability_members
semi join capability_nodes using (tree_id, node_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
left join judged using (task_id, criterion_id)
where is_leaf
qualify row_number() over (
    partition by node_id
    order by handled nulls last, task_id, criterion_id
) <= $most_criteria
order by node_id, handled nulls last, task_id, criterion_id;

-- name: nodes
-- The nodes of the trees of capabilities, parents before their children.
select
    node_id,
    parent_id,
    field,
    level,
    coalesce(name, '(no name)') as name,
    n_criteria,
    n_tasks
from capability_nodes
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by field, position;

-- name: weakness_candidates
-- Number of nodes in which a model was found weak, and number of confirmed ones,
-- by comparison.
select
    compared_model,
    count(distinct node_id) as n_candidates,
    count(distinct node_id) filter (is_confirmed) as n_confirmed
from weakness_candidates
semi join capability_analyses using (analysis_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and model = $model
    and is_among($judges, judge)
    and grading <> 'ternary_as_binary'
group by compared_model
order by compared_model;

-- name: weakness_examples
-- The criteria of a model's weaknesses that it got wrong in every decided trial,
-- by weight, the largest first.
--
-- with: revision/revision_capability_members, figures/shared/shown_runs
with weak as (
    select distinct tree_id, node_id, coalesce(name, '(no name)') as capability
    from weaknesses
    natural join shown_runs
    where model = $model
        and compared_model is not distinct from $than::varchar
        and grading <> 'ternary_as_binary'
),

judged as (
    select judged.task_id, judged.criterion_id, avg(judged.value) as value
    from intermediate.judged_criteria as judged
    inner join intermediate.current_model_runs as model_runs using (model_run_id)
    where model_runs.benchmark = $benchmark
        and model_runs.dataset_revision = $dataset_revision
        and model_runs.model = $model
        and model_runs.is_latest
        and is_among($judges, model_runs.judge)
    group by judged.task_id, judged.criterion_id
)

select
    weak.capability,
    members.node_id,
    members.task_id,
    members.criterion_id,
    criteria.title,
    criteria.weight
from revision_capability_members as members
inner join capability_trees using (benchmark, dataset_revision, tree_id)
inner join weak using (tree_id, node_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join judged using (task_id, criterion_id)
where if(criteria.weight < 0, 1 - judged.value, judged.value) = 0
qualify row_number() over (
    partition by members.node_id
    order by abs(criteria.weight) desc, members.task_id, members.criterion_id
) <= $n_examples
order by members.node_id, abs(criteria.weight) desc, members.task_id, members.criterion_id;

-- name: weaknesses
-- The confirmed weaknesses of all models, or of one model compared with its other
-- criteria or with another model.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    entry as model,
    model as model_label,
    tree_id,
    node_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    compared_model,
    compared_vintage,
    compared_config_hash,
    value,
    compared_value,
    gap,
    gap_ci_low,
    gap_ci_high,
    is_small,
    n_tasks,
    p_confirmed,
    found_gap,
    n_tasks_found,
    p_found,
    method,
    created_at,
    field,
    parent_id,
    level,
    name,
    coalesce(name, '(no name)') as capability,
    coalesce(compared_model, 'its other criteria') as compared_with,
    (
        select any_value(parents.name)
        from capability_nodes as parents
        where parents.tree_id = weaknesses.tree_id and parents.node_id = weaknesses.parent_id
    ) as parent_name
from weaknesses
natural join shown_runs
where grading <> 'ternary_as_binary'
    and (
        $model is null
        or weaknesses.model = $model and compared_model is not distinct from $than::varchar
    )
order by judge_config <> $main, judge_config, compared_model is not null, model, compared_model,
    gap, node_id;

-- name: capability_scores
-- The score of each model in each node of the trees.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    entry as model,
    model as model_label,
    tree_id,
    node_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    value,
    ci_low,
    ci_high,
    is_small,
    n_tasks,
    n_criteria,
    n_decided,
    created_at,
    field,
    parent_id,
    level,
    name,
    coalesce(name, '(no name)') as capability
from capability_scores
natural join shown_runs
order by judge_config <> $main, judge_config, field, level, capability, node_id, value desc, model;
