-- One row: a decided review that counts.
--
-- Only reviews under a model's current configuration count, with the latest
-- template. Each repetition counts as a reviewer.
--
-- built as: view
-- depends on: analysts, criterion_reviews
select
    criterion_reviews.benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    title,
    category,
    severity,
    weight,
    source,
    reviewer,
    reviewer_config_hash,
    review_trial,
    review_check,
    value,
    explanation,
    better_wording,
    reviewer || case when review_trial > 1 then '#' || review_trial else '' end as repeated
from criterion_reviews
left join analysts
    on criterion_reviews.benchmark = analysts.benchmark
        and criterion_reviews.reviewer = analysts.analyst
        and criterion_reviews.source = 'reviewed'
        and analysts.purpose = 'review'
where value is not null
    and (analyst_config_hash is null or analyst_config_hash = reviewer_config_hash)
window of_reviewer as (
    partition by criterion_reviews.benchmark, dataset_revision, source, reviewer
    order by criterion_reviews.created_at desc, hash(reviewer_config_hash, template_hash) desc
)
qualify hash(reviewer_config_hash, template_hash)
    = first_value(hash(reviewer_config_hash, template_hash)) over of_reviewer
