-- What verdicts on the answers to some tasks rest on where that is not the
-- criterion's own words, the whole answer and one judge, as JSON.
-- begins with: shown_grounds
select task_id, entry,
    to_json(list({
        trial: trial,
        is_older: is_older,
        judging: judging,
        position: position,
        asked: asked,
        chunks: coalesce(chunks, []),
        decided_by: decided_by,
        escalated_because: escalated_because
    } order by trial, judging, position, verdict_id)) as grounds
from shown_grounds
where grading <> 'ternary_as_binary'
    and task_id in (select unnest($tasks::varchar[]))
    and (asked is not null or chunks is not null or decided_by is not null)
group by task_id, entry
order by task_id, entry
