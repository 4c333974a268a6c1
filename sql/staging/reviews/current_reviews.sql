-- One row: a decided review that counts.
--
-- Of a model that was configured in several ways, or asked with several
-- templates, the latest counts. A repetition is a reviewer of its own.
--
-- built as: view
-- depends on: criterion_reviews
with latest as (
    select
        benchmark,
        dataset_revision,
        source,
        reviewer,
        arg_max(
            hash(reviewer_config_hash, template_hash),
            (created_at, hash(reviewer_config_hash, template_hash))
        ) as configured
    from criterion_reviews
    group by all
)

select
    criterion_reviews.*,
    reviewer
    || case when review_trial > 1 then '#' || review_trial else '' end
        as repeated
from criterion_reviews
inner join latest using (benchmark, dataset_revision, source, reviewer)
where
    value is not null
    and latest.configured = hash(reviewer_config_hash, template_hash)
