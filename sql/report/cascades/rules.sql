-- The rules of the latest evaluation of each pair of judges, cheapest first,
-- with their figures on the held-out tasks.
with latest as (
    select cheap_judge, strong_judge, evaluated_splits,
        arg_max(evaluation_id, created_at) as evaluation_id
    from cascade_rules
    where benchmark = $benchmark and dataset_revision = $revision
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
semi join latest on rules.evaluation_id = latest.evaluation_id
order by cascade, rules.position
