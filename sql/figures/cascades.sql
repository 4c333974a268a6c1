-- name: cascade_decisions
-- One row: a reason for a call of a cascade's second judge, or the decision of the
-- first judge; a verdict with several reasons counts under each.
with decisions as (
    select *,
        count(*) over (partition by judge) as n_verdicts,
        coalesce(escalated_because, ['decided at once']) as reasons
    from verdicts
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and decided_by is not null
)

select judge, reason, decided_by,
    count(*) as n,
    count(*) / any_value(n_verdicts) as share,
    count(*) - count(value) as n_failed,
    case when count(*) = count(cost_usd) then round(exact_sum(cost_usd), 12) end as cost_usd
from (select *, unnest(reasons) as reason from decisions)
group by judge, reason, decided_by
order by judge, n desc, reason, decided_by;

-- name: cascade_rules
-- The rules of the latest evaluation of each pair of judges, cheapest first,
-- with their figures on the held-out tasks.
select
    cheap_judge || ', then ' || strong_judge
    || case
        when len(evaluated_splits) = 0 then ''
        else ' (' || list_aggregate(evaluated_splits, 'string_agg', ', ') || ')'
    end as cascade,
    * exclude (evaluation_id, benchmark, dataset_revision, evaluated_splits, created_at)
from cascade_rules
where benchmark = $benchmark and dataset_revision = $dataset_revision
qualify evaluation_id = arg_max(evaluation_id, created_at) over (
    partition by cheap_judge, strong_judge, evaluated_splits
)
order by cascade, position;
