-- The one pass over all verdicts: of each response under each judging, what the decided criteria add up to, over the
-- whole rubric and over each category and severity. A verdict on a criterion that has changed since, or on a task
-- that was refused, is left out.
select
    verdicts.response_id,
    hash(judge, judge_config_hash, template_hash, grading, judge_trial)
        as judging_id,
    case
        when grouping(criteria.category) = 0 then 'category'
        when grouping(criteria.severity) = 0 then 'severity'
        else 'all'
    end as cut,
    case
        when grouping(criteria.category) = 0
            then coalesce(criteria.category, '(none)')
        when grouping(criteria.severity) = 0
            then coalesce(criteria.severity, '(none)')
        else ''
    end as label,
    coalesce(sum(weight * value), 0) as points,
    coalesce(sum(weight) filter (where value is not null and weight > 0), 0)
        as decided_positive,
    coalesce(sum(weight) filter (where value is not null and weight < 0), 0)
        as decided_negative,
    coalesce(sum(value), 0) as n_met,
    -- What has no weight cannot be scored, whatever the verdict.
    count(value) filter (where weight is not null) as n_decided,
    sum(verdicts.cost_usd) as cost_usd,
    -- A cost that is not known makes the sum unknown, not smaller.
    count(*) > count(verdicts.cost_usd) as is_cost_unknown
from verdicts
inner join criteria
    on
        verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
inner join tasks
    on
        criteria.benchmark = tasks.benchmark
        and criteria.dataset_revision = tasks.dataset_revision
        and criteria.task_id = tasks.task_id
        and tasks.is_admitted
group by
    verdicts.response_id, judging_id,
    grouping sets ((), (criteria.category), (criteria.severity))
