-- One row: a criterion of a response that several graders decided, with its
-- labels: category, severity, the task's field, the model, and the quarter of the
-- response's length.
--
-- depends on: temp.graded, criteria, responses, tasks
with lengths as (
    select response_id, benchmark, dataset_revision, chars_alnum,
        -- Responses of equal length are in one quarter.
        1 + 4 * (rank() over same_revision - 1) // count(*) over whole_revision as quarter
    from responses
    semi join temp.graded using (response_id)
    where chars_alnum is not null
    window
        same_revision as (partition by benchmark, dataset_revision order by chars_alnum),
        whole_revision as (partition by benchmark, dataset_revision)
),

quarters as (
    select response_id,
        'quarter ' || quarter || ' (' || min(chars_alnum) over same || ' to '
        || max(chars_alnum) over same || ' letters and digits)' as length
    from lengths
    window same as (partition by benchmark, dataset_revision, quarter)
)

select
    cells.response_id,
    cells.criterion_id,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity,
    coalesce(tasks.field, '(none)') as field,
    responses.model,
    coalesce(quarters.length, '(none)') as length
from (select distinct * exclude (grader_id, value, probability) from temp.graded) as cells
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
inner join responses using (response_id)
left join quarters using (response_id)
