-- The usable responses that a person can be asked about: those that an imported
-- verdict can name by task, model, trial and vintage, each alone in its place.
-- Models that are sampled nightly are of the night, all others of one vintage;
-- or all are of every vintage.
select responses.response_id, responses.task_id, responses.model, responses.trial, tasks.n_criteria
from responses
inner join tasks using (benchmark, dataset_revision, task_id)
where responses.benchmark = $benchmark
    and responses.dataset_revision = $revision
    and (
        $is_any_vintage
        or responses.vintage = case
            when list_contains($nightly_models::varchar[], responses.model) then $night::varchar
            else $vintage::varchar
        end
    )
    and responses.status = 'ok'
    and list_contains($task_ids::varchar[], responses.task_id)
    and ($models::varchar[] is null or list_contains($models::varchar[], responses.model))
    and ($trials::bigint[] is null or list_contains($trials::bigint[], responses.trial))
qualify count(*) over (
    partition by responses.task_id, responses.model, responses.trial, responses.vintage
) = 1
order by responses.response_id
