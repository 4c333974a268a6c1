-- Every usable response of a revision that a judge has begun, with how many of
-- its criteria have no verdict.
select
    response_id || '/' || series_id as key,
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
