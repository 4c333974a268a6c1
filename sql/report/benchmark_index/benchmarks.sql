-- The benchmarks of the warehouse, each data-set revision by itself: what there
-- is of it, the one judged last first.
with of_tasks as (
    select benchmark, dataset_revision,
        count(*) filter (is_admitted) as n_tasks,
        coalesce(sum(n_criteria) filter (is_admitted), 0)::bigint as n_criteria
    from tasks
    group by benchmark, dataset_revision
),

answered as (
    select benchmark, dataset_revision, count(distinct model) as n_models
    from responses
    group by benchmark, dataset_revision
),

judged as (
    select benchmark, dataset_revision,
        count(distinct judge) filter (
            counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash)
        ) as n_judges,
        max(created_at) as judged_at
    from verdicts
    group by benchmark, dataset_revision
)

select of_tasks.*,
    coalesce(answered.n_models, 0) as n_models,
    coalesce(judged.n_judges, 0) as n_judges,
    judged.judged_at
from of_tasks
left join answered using (benchmark, dataset_revision)
left join judged using (benchmark, dataset_revision)
order by benchmark, judged_at desc nulls last, dataset_revision
