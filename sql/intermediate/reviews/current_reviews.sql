-- One row: a decided review that counts.
--
-- Only reviews under a model's current configuration count, with the latest
-- template. Each repetition counts as a reviewer.
--
-- built as: view
-- depends on: analysts, criterion_reviews
with decided as (
    select criterion_reviews.*
    from criterion_reviews
    left join analysts
        on criterion_reviews.benchmark = analysts.benchmark
            and criterion_reviews.reviewer = analysts.analyst
            and criterion_reviews.source = 'reviewed'
            and analysts.purpose = 'review'
    where value is not null
        and (analyst_config_hash is null or analyst_config_hash = reviewer_config_hash)
),

latest as (
    select benchmark, dataset_revision, source, reviewer,
        arg_max(
            hash(reviewer_config_hash, template_hash),
            (created_at, hash(reviewer_config_hash, template_hash))
        ) as configured
    from decided
    group by all
)

select decided.*,
    reviewer || case when review_trial > 1 then '#' || review_trial else '' end as repeated
from decided
inner join latest using (benchmark, dataset_revision, source, reviewer)
where latest.configured = hash(reviewer_config_hash, template_hash)
