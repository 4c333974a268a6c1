-- One row: a row of a leaderboard, with the displayed rank and the values that
-- clipping hides, if any.
--
-- The latest vintages of all models are ranked together, an earlier vintage with
-- the models of the same vintage.
--
-- built as: view
-- depends on: intermediate.leaderboard_rows
with clipped as (
    select *,
        coalesce(raw_ci_low < ci_low, false) as is_interval_clipped,
        is_interval_clipped or coalesce(raw_mean_score < mean_score, false) as is_clipped
    from intermediate.leaderboard_rows
)

select *,
    case when is_clipped then raw_mean_score end as hidden_mean_score,
    case when is_interval_clipped then raw_ci_low end as hidden_ci_low,
    case when is_interval_clipped then raw_ci_high end as hidden_ci_high,
    case when is_latest then latest_rank else rank end as displayed_rank,
    case when is_latest then n_tasks_latest_ranked else n_tasks_ranked end
        as displayed_n_tasks_ranked,
    case when is_latest then latest_rank_low else rank_low end as displayed_rank_low,
    case when is_latest then latest_rank_high else rank_high end as displayed_rank_high
from clipped
