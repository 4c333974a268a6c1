-- One row: cost and length of a model run on a task set.
--
-- What the responses and verdicts of a model run on a task set cost, how long
-- its responses are, and whether any has a verdict: a model run may have all its
-- verdicts on other task sets.
--
-- built as: table
-- depends on: intermediate.response_points, intermediate.task_set_members, responses
select task_set_members.task_set_id, response_points.model_run_id,
    avg(responses.chars_alnum) filter (where responses.status = 'ok') as mean_chars_alnum,
    avg(responses.completion_tokens) filter (where responses.status = 'ok')
        as mean_completion_tokens,
    case
        -- A cost that is not known makes the sum unknown, not smaller.
        when not bool_or(is_cost_unknown or responses.cost_usd is null)
            then exact_sum(responses.cost_usd + coalesce(response_points.cost_usd, 0))
    end as cost_usd,
    -- A verdict has a cost, known or not.
    bool_or(response_points.cost_usd is not null or is_cost_unknown) as is_judged
from intermediate.response_points
inner join responses using (response_id)
inner join intermediate.task_set_members
    on responses.benchmark = task_set_members.benchmark
        and responses.dataset_revision = task_set_members.dataset_revision
        and responses.task_id = task_set_members.task_id
where response_points.breakdown = 'all'
group by task_set_members.task_set_id, response_points.model_run_id
