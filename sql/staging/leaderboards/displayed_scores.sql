-- One row: a row of a leaderboard, with the rank that is displayed and, where
-- clipping hides something, what it hides.
--
-- The latest vintages of all models are ranked together, earlier ones among
-- those of their own vintage.
--
-- built as: view
-- depends on: staging.leaderboard_rows
with clipped as (
    select
        *,
        coalesce(raw_ci_low < ci_low, false) as is_interval_clipped,
        is_interval_clipped
        or coalesce(raw_mean_score < mean_score, false) as is_clipped
    from staging.leaderboard_rows
)

select
    *,
    if(is_clipped, raw_mean_score, null) as hidden_mean_score,
    if(is_interval_clipped, raw_ci_low, null) as hidden_ci_low,
    if(is_interval_clipped, raw_ci_high, null) as hidden_ci_high,
    if(is_latest, latest_rank, rank) as displayed_rank,
    if(is_latest, latest_rank_low, rank_low) as displayed_rank_low,
    if(is_latest, latest_rank_high, rank_high) as displayed_rank_high
from clipped
