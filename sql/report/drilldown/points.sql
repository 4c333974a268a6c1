-- What the answers to some tasks add up to under every judging, with bounds
-- where something is undecided, as JSON.
-- begins with: shown_points
select task_id, entry,
    to_json(list({
        trial: trial,
        response_id: response_id,
        judging: judging,
        value: value,
        value_lower: value_lower,
        value_upper: value_upper,
        points: points,
        points_lower: points + undecided_negative,
        points_upper: points + undecided_positive,
        positive: positive,
        n_met: n_met,
        n_decided: n_decided,
        n_wanted: n_wanted
    } order by trial, judging)) as points
from shown_points
where task_id in (select unnest($tasks::varchar[]))
group by task_id, entry
order by task_id, entry
