-- One row: a pair of decisions by two reviewers on the same criteria of a task,
-- in one check, with its count.
--
-- built as: table
-- depends on: intermediate.current_reviews
select
    a.benchmark,
    a.dataset_revision,
    a.review_check,
    a.repeated as reviewer_a,
    b.repeated as reviewer_b,
    a.task_id,
    a.value as value_a,
    b.value as value_b,
    count(*) as n
from intermediate.current_reviews as a
inner join intermediate.current_reviews as b
    using (benchmark, dataset_revision, task_id, criterion_id, review_check, source)
where a.repeated < b.repeated
group by all
