-- One row: a data-set revision that something is stored of, those with most
-- verdicts first.
with answered as (
    select benchmark, dataset_revision, count(*) as n_responses
    from responses
    group by all
),

judged as (
    select benchmark, dataset_revision, count(*) as n_verdicts
    from verdicts
    group by all
)

select
    benchmark,
    dataset_revision,
    list(distinct split order by split) as splits,
    count(distinct task_id) as n_tasks,
    coalesce(any_value(n_responses), 0) as n_responses,
    coalesce(any_value(n_verdicts), 0) as n_verdicts
from split_members
left join answered using (benchmark, dataset_revision)
left join judged using (benchmark, dataset_revision)
group by all
order by n_verdicts desc, n_responses desc, benchmark, dataset_revision
