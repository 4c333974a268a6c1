-- What the responses and verdicts of a series on a board cost, how long its answers are, and whether any has a verdict:
-- a series may have all its verdicts on other boards.
select
    boards.board_id,
    response_parts.series_id,
    avg(responses.chars_alnum) filter (where responses.status = 'ok')
        as mean_chars_alnum,
    avg(responses.completion_tokens) filter (where responses.status = 'ok')
        as mean_completion_tokens,
    case
        -- A cost that is not known makes the sum unknown, not smaller.
        when not bool_or(is_cost_unknown or responses.cost_usd is null)
            then sum(responses.cost_usd + coalesce(response_parts.cost_usd, 0))
    end as cost_usd,
    -- A verdict has a cost, known or not.
    bool_or(response_parts.cost_usd is not null or is_cost_unknown)
        as is_judged
from response_parts
inner join responses using (response_id)
inner join boards
    on
        responses.benchmark = boards.benchmark
        and responses.dataset_revision = boards.dataset_revision
        and responses.task_id = boards.task_id
where response_parts.cut = 'all'
group by boards.board_id, response_parts.series_id
