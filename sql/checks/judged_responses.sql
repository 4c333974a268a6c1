-- Every usable response of a revision that a judge has begun, with how many of its criteria have a verdict.
select
    response_id || '/' || series_id as key,
    any_value(judged_criteria.task_id) as task_id,
    any_value(series.judge) || ' on ' || any_value(series.model) || ', task '
    || any_value(judged_criteria.task_id) || ': '
    || count(judged_criteria.verdict_id) || ' verdicts of ' || count(*)
        as note,
    count(*) - count(judged_criteria.verdict_id) as n_missing
from judged_criteria
inner join series using (series_id)
where
    judged_criteria.benchmark = $benchmark
    and judged_criteria.dataset_revision = $revision
    and judged_criteria.status <> 'no_response'
group by response_id, series_id
having count(judged_criteria.verdict_id) > 0
order by 1
