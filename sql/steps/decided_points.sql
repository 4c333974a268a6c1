-- One row: what the decided criteria of a response under a judging add up to,
-- by breakdown and label of the rubric.
--
-- The one pass over all verdicts: of each response under each judging, what the
-- decided criteria add up to, over the whole rubric, over each category and
-- severity, and over each further label that criteria carry.
--
-- depends on: staging.current_verdicts, criterion_labels
with labelled as (
    select *, null as kind, null as own_label
    from staging.current_verdicts
    union all by name
    select current_verdicts.*, kind, label as own_label
    from staging.current_verdicts
    inner join criterion_labels
        using (benchmark, dataset_revision, task_id, criterion_id)
)

select
    response_id,
    judging_id,
    case
        when kind is not null then kind
        when grouping(category) = 0 then 'category'
        when grouping(severity) = 0 then 'severity'
        else 'all'
    end as breakdown,
    coalesce(own_label, category, severity, '') as label,
    coalesce(sum(weight * value), 0) as points,
    coalesce(sum(weight) filter (where value is not null and weight > 0), 0)
        as decided_positive,
    coalesce(sum(weight) filter (where value is not null and weight < 0), 0)
        as decided_negative,
    coalesce(sum(value), 0) as n_met,
    -- What has no weight cannot be scored, whatever the verdict.
    count(value) filter (where weight is not null) as n_decided,
    sum(cost_usd) as cost_usd,
    -- A cost that is not known makes the sum unknown, not smaller.
    count(*) > count(cost_usd) as is_cost_unknown
from labelled
group by
    response_id,
    judging_id,
    kind,
    own_label,
    grouping sets ((), (category), (severity))
having kind is null or grouping(category, severity) = 3
