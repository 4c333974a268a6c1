-- One row: a pair of decisions by two reviewers on the same criteria of a task,
-- in one check, with its count.
--
-- built as: table
-- depends on: intermediate.current_reviews
select
    first_review.benchmark,
    first_review.dataset_revision,
    first_review.review_check,
    first_review.repeated as reviewer_a,
    second_review.repeated as reviewer_b,
    first_review.task_id,
    first_review.value as value_a,
    second_review.value as value_b,
    count(*) as n
from intermediate.current_reviews as first_review
inner join intermediate.current_reviews as second_review
    using (benchmark, dataset_revision, task_id, criterion_id, review_check, source)
where first_review.repeated < second_review.repeated
group by all
