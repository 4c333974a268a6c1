-- name: cascade_decisions
-- One row: a reason for a call of a cascade's second judge, or the decision of the
-- first judge; a verdict with several reasons counts under each.
with decisions as (
    select judge, decided_by, escalated_because, cost_usd, value
    from revision_verdicts
    where decided_by is not null
),

totals as (
    select judge, count(*) as n_verdicts
    from decisions
    group by judge
),

reasons as (
    select judge, decided_by,
        coalesce(reason, 'decided at once') as reason,
        count(*) as n,
        count(*) - count(value) as n_failed,
        case when count(*) = count(cost_usd) then exact_sum(cost_usd) end as cost_usd
    from (select *, unnest(coalesce(escalated_because, [null])) as reason from decisions)
    group by judge, decided_by, reason
)

select reasons.judge, reasons.reason, reasons.decided_by, reasons.n,
    reasons.n / totals.n_verdicts as share,
    reasons.n_failed,
    round(reasons.cost_usd, 12) as cost_usd
from reasons
inner join totals using (judge)
order by reasons.judge, reasons.n desc, reasons.reason, reasons.decided_by;

-- name: cascade_rules
-- The rules of the latest evaluation of each pair of judges, cheapest first,
-- with their figures on the held-out tasks.
with latest as (
    select cheap_judge, strong_judge, evaluated_splits,
        arg_max(evaluation_id, created_at) as evaluation_id
    from revision_cascade_rules
    group by cheap_judge, strong_judge, evaluated_splits
)

select
    rules.cheap_judge || ', then ' || rules.strong_judge
    || case
        when len(rules.evaluated_splits) = 0 then ''
        else ' (' || list_aggregate(rules.evaluated_splits, 'string_agg', ', ') || ')'
    end as cascade,
    rules.* exclude (evaluation_id, benchmark, dataset_revision, evaluated_splits, created_at)
from cascade_rules as rules
semi join latest using (evaluation_id)
order by cascade, rules.position;
