-- One row: a criterion in a node of the trees that a model handled wrongly in
-- every trial in which it is decided, the heaviest first.
select
    members.node_id,
    members.task_id,
    members.criterion_id,
    criteria.title,
    criteria.weight
from capability_members as members
inner join capability_trees using (benchmark, dataset_revision, tree_id)
inner join criteria
    using (benchmark, dataset_revision, task_id, criterion_id)
inner join
    (
        select
            judged.task_id,
            judged.criterion_id,
            avg(judged.value) as value
        from staging.judged_criteria as judged
        inner join staging.model_runs using (model_run_id)
        where
            model_runs.benchmark = $benchmark
            and model_runs.dataset_revision = $revision
            and model_runs.model = $model
            and model_runs.is_latest
            and (
                $judges = [] or list_contains($judges::varchar[], model_runs.judge)
            )
        group by judged.task_id, judged.criterion_id
    ) as judged
    using (task_id, criterion_id)
where
    members.benchmark = $benchmark
    and members.dataset_revision = $revision
    and list_contains($nodes::varchar[], members.node_id)
    and if(criteria.weight < 0, 1 - judged.value, judged.value) = 0
qualify
    row_number() over (
        partition by members.node_id
        order by
            abs(criteria.weight) desc, members.task_id, members.criterion_id
    )
    <= $n_examples
order by
    members.node_id, abs(criteria.weight) desc, members.task_id,
    members.criterion_id
