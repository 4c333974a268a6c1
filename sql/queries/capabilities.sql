-- name: judge_configs
-- One row: a judge configuration with verdicts on the criteria of the trees, and a
-- fingerprint of all compared values.
with trees as (
    select bit_xor(hash(field, tree_id)) as basis
    from capability_trees
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

verdicts as (
    select judging_id,
        bit_xor(hash(
            judged.model_run_id, judged.task_id, judged.trial,
            judged.criterion_id, judged.weight, judged.value
        )) as basis
    from intermediate.judged_criteria as judged
    inner join intermediate.current_model_runs as model_runs using (model_run_id)
    where model_runs.benchmark = $benchmark
        and model_runs.dataset_revision = $dataset_revision
        and model_runs.is_latest
    group by judging_id
)

select
    judging_id::varchar as judging_id,
    judge, judge_config_hash, template_hash, grading, judge_trial,
    verdicts.basis::varchar || ' ' || trees.basis::varchar as basis
from verdicts
inner join intermediate.judge_configs using (judging_id)
cross join trees
order by all;

-- name: node_phrases
-- One row: a node of a current tree, below the root, with its phrases, the most
-- frequent first.
--
-- with: revision/revision_capability_members, queries/capabilities/phrases
with of_nodes as (
    select tree_id, node_id, phrase, count(*) as n_criteria
    from revision_capability_members
    inner join capability_trees using (benchmark, dataset_revision, tree_id)
    inner join phrases using (task_id, criterion_id, criterion_hash)
    group by all
)

select nodes.tree_id, nodes.node_id, nodes.parent_id,
    list(phrase order by of_nodes.n_criteria desc, phrase) as phrases
from of_nodes
inner join capability_node_rows as nodes using (tree_id, node_id)
where nodes.level > 0
group by nodes.field, nodes.tree_id, nodes.node_id, nodes.parent_id, nodes.position
order by nodes.field, nodes.position;

-- name: phrases
-- One row: a current criterion of an admitted task, with the latest phrase that a
-- model wrote for it with a template.
select coalesce(tasks.field, '(none)') as field, task_id, criterion_id, criterion_hash, phrase
from criterion_capabilities as capabilities
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and capabilities.model_config_hash = $model_config_hash
    and capabilities.template_hash = $template_hash
    and capabilities.status = 'ok'
    and capabilities.criterion_hash = criteria.content_hash
    and tasks.is_admitted
qualify row_number() over (
    partition by task_id, criterion_id
    order by capabilities.created_at desc, capability_id
) = 1
order by field, task_id, criterion_id;

-- name: values
-- One row: a criterion in a model run, with its mean value over the decided
-- trials; NULL if there are none.
select
    dense_rank() over (order by model_runs.model, model_runs.model_config_hash, model_runs.vintage)
    - 1 as model_run,
    members.position,
    avg(judged.value) as value,
    any_value(judged.weight) as weight
from intermediate.judged_criteria as judged
inner join intermediate.current_model_runs as model_runs using (model_run_id)
inner join (
    select task_id, criterion_id, row_number() over (order by task_id, criterion_id) - 1 as position
    from capability_members
    where tree_id = $tree_id and is_leaf
) as members using (task_id, criterion_id)
where model_runs.benchmark = $benchmark
    and model_runs.dataset_revision = $dataset_revision
    and model_runs.judging_id::varchar = $judging_id
    and model_runs.is_latest
group by model_runs.model, model_runs.model_config_hash, model_runs.vintage, members.position
order by all;
