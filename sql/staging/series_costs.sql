-- What the responses and verdicts of a series on a board cost, and how long its answers are.
with response_costs as (
    select
        series_id,
        response_id,
        sum(cost_usd) as verdicts_usd,
        -- A cost that is not known makes the sum unknown, not smaller.
        bool_or(verdict_id is not null and cost_usd is null) as is_unknown
    from judged_criteria
    group by all
),

final as (
    select
        boards.board_id,
        response_costs.series_id,
        avg(responses.chars_alnum) filter (where responses.status = 'ok')
            as mean_chars_alnum,
        case
            when not bool_or(is_unknown or responses.cost_usd is null)
                then sum(responses.cost_usd + coalesce(verdicts_usd, 0))
        end as cost_usd
    from response_costs
    inner join responses using (response_id)
    inner join boards using (benchmark, dataset_revision, task_id)
    group by all
)

select * from final
