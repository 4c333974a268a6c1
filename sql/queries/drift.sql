-- name: candidates
-- One row: a verdict for a judge configuration's control set: as many met as unmet
-- ones if possible, from as many tasks as possible, a few criteria of each
-- response. The choice depends on content only. Responses are materialized, so
-- that each text is hashed once and not for each of its verdicts.
with usable_responses as materialized (
    select responses.response_id, responses.conversation_id,
        md5(responses.response_id) as response_order,
        md5(responses.text) as text_hash
    from responses
    inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where responses.benchmark = $benchmark
        and responses.dataset_revision = $dataset_revision
        and responses.status = 'ok'
        and tasks.is_admitted
),

-- Equal responses share one call, so only one of their verdicts tells something
-- about the judge's stability.
decided as (
    select verdicts.task_id,
        min(usable_responses.response_order) as response_order,
        arg_min(
            verdicts.verdict_id, usable_responses.response_order || verdicts.verdict_id
        ) as verdict_id,
        arg_min(verdicts.value, usable_responses.response_order || verdicts.verdict_id) as value
    from verdicts
    inner join usable_responses using (response_id)
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    where verdicts.criterion_hash = criteria.content_hash
        and verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $dataset_revision
        and verdicts.judge = $judge
        and verdicts.judge_config_hash = $judge_config_hash
        and verdicts.template_hash = $template_hash
        and verdicts.grading = $grading
        and verdicts.judge_trial = $judge_trial
        and verdicts.source = 'judged'
        and verdicts.value is not null
    group by verdicts.task_id, usable_responses.text_hash, verdicts.criterion_hash
),

numbered as (
    select *,
        dense_rank() over (partition by task_id order by response_order) as response_number,
        row_number() over (
            partition by response_order, value order by md5(verdict_id)
        ) as criterion_number
    from decided
),

ranked as (
    select verdict_id,
        row_number() over (
            partition by value
            order by (criterion_number - 1) // $of_response, response_number, md5(task_id),
                criterion_number
        ) as position
    from numbered
),

chosen as (
    select verdicts.*, usable_responses.conversation_id, ranked.position
    from ranked
    inner join verdicts using (verdict_id)
    inner join usable_responses using (response_id)
    -- The first met, the first unmet, the second met, ...; when one kind is used
    -- up, the other fills the rest.
    order by ranked.position, verdicts.value desc
    limit $number
)

select benchmark, dataset_revision, task_id, judge, judge_config_hash, template_hash, grading,
    judge_trial, verdict_id, response_id, conversation_id, criterion_id, criterion_hash, model,
    trial, vintage,
    value as first_value
from chosen
order by position, value desc;

-- name: members
-- One row: a member of a control set without a verdict in a night, or with a
-- temporary failure (`stored_status`), with the inputs of the judge; missing ones
-- are NULL.
with tonight as (
    select response_id, criterion_id, criterion_hash, status
    from control_verdicts
    where set_id = $set_id and judge_vintage = $night
)

select control_set.*,
    responses.text as response_text,
    criteria.title as criterion_text,
    criteria.weight, criteria.category,
    tasks.task_id is not null as has_same_prompt,
    tonight.status as stored_status
from control_set
left join responses on control_set.response_id = responses.response_id and responses.status = 'ok'
left join criteria
    on control_set.benchmark = criteria.benchmark
        and control_set.dataset_revision = criteria.dataset_revision
        and control_set.task_id = criteria.task_id
        and control_set.criterion_id = criteria.criterion_id
        and control_set.criterion_hash = criteria.content_hash
left join tasks
    on control_set.benchmark = tasks.benchmark
        and control_set.dataset_revision = tasks.dataset_revision
        and control_set.task_id = tasks.task_id
        and control_set.conversation_id = tasks.conversation_id
        and tasks.is_admitted
left join tonight
    on control_set.response_id = tonight.response_id
        and control_set.criterion_id = tonight.criterion_id
        and control_set.criterion_hash = tonight.criterion_hash
where control_set.set_id = $set_id
    and (tonight.status is null or list_contains($again::varchar[], tonight.status))
order by control_set.task_id, control_set.response_id, criteria.position, control_set.criterion_id;
