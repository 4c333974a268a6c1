-- Reviews that failed, by reviewer and cause.
select
    reviewer,
    status,
    count(*) as n
from criterion_reviews
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and review_check is null
group by all
order by reviewer, status
