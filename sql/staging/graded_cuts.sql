-- What a graded criterion stands under, beside the whole: its category and severity, its task's field, the model that
-- answered, and how long the answer is.
with lengths as (
    select
        response_id,
        model,
        chars_alnum,
        ntile(4) over (order by chars_alnum) as quarter
    from responses
    semi join graded using (response_id)
),

quarters as (
    select
        response_id,
        model,
        'quarter ' || quarter || ' (' || min(chars_alnum) over same || ' to '
        || max(chars_alnum) over same || ' letters and digits)' as length
    from lengths
    window same as (partition by quarter)
),

cells as (
    select distinct response_id, benchmark, dataset_revision, task_id, criterion_id
    from graded
)

select
    cells.response_id,
    cells.criterion_id,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity,
    coalesce(tasks.field, '(none)') as field,
    quarters.model,
    coalesce(quarters.length, '(none)') as length
from cells
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
inner join quarters using (response_id)
