-- name: population_of_model
-- The usable responses of a model in a vintage to admitted tasks, and the number of
-- verdicts on them that can be scored: one for each criterion with a weight.
--
-- with: revision/revision_responses
select list(distinct response_id order by response_id) as covered_responses,
    count(*) as n_population
from revision_responses
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id)
where model = $model
    and vintage = $vintage
    and status = 'ok'
    and is_admitted
    and weight is not null;

-- name: batch
-- The stored rows of one imported file, all verdicts on its responses, and a flag
-- that is true if it was retracted.
with of_batch as (select response_id from responses where import_batch = $batch)

select
    (select count(*) from of_batch) as n_responses,
    (
        select count(*) from verdicts
        where import_batch = $batch or response_id in (select response_id from of_batch)
    ) as n_verdicts,
    (select count(*) from expert_reviews where import_batch = $batch) as n_reviews,
    coalesce((select is_retracted from retractions where import_batch = $batch), false)
        as is_retracted;

-- name: criteria_to_judge
-- One row: a criterion in one of its wordings, with its category and weight.
select task_id, criterion_id, title, content_hash, rubric, category, weight
from intermediate.rubric_criteria
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by task_id, position;

-- name: sheets_of_verdicts
-- One row: a sheet for people that drew all of some verdicts.
select sheet_id
from label_draws
where not is_known
    and sheet_id in (select sheet_id from label_sheets where import_batch is null)
    and [response_id, criterion_id, criterion_hash] in (select unnest($subjects::varchar[][]))
group by sheet_id
having count(*) = len($subjects);
