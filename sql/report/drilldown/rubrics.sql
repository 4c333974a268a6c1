-- What some tasks ask: the conversation as it is sent, and the criteria, as
-- JSON. Until a task is assembled, its turns stand there as the data gives
-- them.
-- begins with: labelled_criteria
with sent as (
    select messages.*
    from messages
    -- What an earlier assembly sent is not what is sent now.
    semi join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where messages.benchmark = $benchmark
        and messages.dataset_revision = $revision
        and messages.task_id in (select unnest($tasks::varchar[]))
),

given as (
    select task_id,
        3 * position as place,
        'user' as role,
        prompt as content,
        reference_texts, response
    from conversation_turns
    where benchmark = $benchmark
        and dataset_revision = $revision
        and task_id in (select unnest($tasks::varchar[]))
        and task_id not in (select task_id from sent)
),

said as (
    select task_id, position as place, role, content, true as is_sent
    from sent
    union all by name
    select task_id, place, role, content, false as is_sent
    from given
    union all by name
    select task_id,
        place + 1 as place,
        'reference texts' as role,
        array_to_string(reference_texts, chr(10) || chr(10)) as content,
        false as is_sent
    from given
    union all by name
    select task_id, place + 2 as place, 'assistant' as role, response as content, false as is_sent
    from given
),

turns as (
    select task_id,
        bool_and(is_sent) as is_sent,
        to_json(list({role: role, content: content} order by place)) as conversation
    from said
    where is_sent or trim(content) <> ''
    group by task_id
),

rubrics as (
    select task_id,
        to_json(list({
            position: position,
            key: left(sha256(criterion_id), 16),
            criterion_id: criterion_id,
            title: title,
            category: category,
            severity: severity,
            weight: weight,
            labels: labels
        } order by position)) as criteria
    from labelled_criteria
    where task_id in (select unnest($tasks::varchar[]))
    group by task_id
)

select task_id,
    coalesce(turns.conversation, '[]') as conversation,
    coalesce(rubrics.criteria, '[]') as criteria,
    coalesce(turns.is_sent, false)::json::varchar as is_sent
from (select unnest($tasks::varchar[]) as task_id)
left join rubrics using (task_id)
left join turns using (task_id)
order by task_id
