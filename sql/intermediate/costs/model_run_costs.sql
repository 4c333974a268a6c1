-- One row: cost and length of a model run on a task set.
--
-- The cost of its responses and verdicts there, the mean length of the responses,
-- and whether any of them has a verdict; all its verdicts may be outside the set.
--
-- built as: table
-- depends on: intermediate.response_points, intermediate.task_set_members, responses
select
    task_set_id,
    model_run_id,
    avg(chars_alnum) filter (where status = 'ok') as mean_chars_alnum,
    avg(completion_tokens) filter (where status = 'ok') as mean_completion_tokens,
    case
        -- One unknown cost makes the sum unknown.
        when not bool_or(is_cost_unknown or responses.cost_usd is null)
            then exact_sum(responses.cost_usd + coalesce(response_points.cost_usd, 0))
    end as cost_usd,
    bool_or(has_verdicts) as is_judged
from intermediate.response_points
inner join responses using (response_id, task_id)
inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
where breakdown = 'all'
group by all
