-- What every judging decided on the answers to some tasks, criterion by
-- criterion, as JSON. Verdicts on what a criterion said earlier are left out,
-- as everywhere.
-- begins with: shown_verdicts
select task_id, entry,
    to_json(list({
        trial: trial,
        is_older: is_older,
        judging: judging,
        position: position,
        status: status,
        -- Another reading of a verdict is listed beside the one that explains.
        explanation: if(grading = 'ternary_as_binary', null, explanation),
        error: error
    } order by trial, judging, position, verdict_id)) as verdicts
from shown_verdicts
where task_id in (select unnest($tasks::varchar[]))
group by task_id, entry
order by task_id, entry
