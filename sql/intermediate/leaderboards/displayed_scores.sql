-- One row: a row of a leaderboard, with the values that clipping hides, if any.
--
-- built as: view
-- depends on: intermediate.leaderboard_rows
select *,
    case
        when raw_ci_low < ci_low or raw_mean_score < mean_score then raw_mean_score
    end as hidden_mean_score,
    case when raw_ci_low < ci_low then raw_ci_low end as hidden_ci_low,
    case when raw_ci_low < ci_low then raw_ci_high end as hidden_ci_high
from intermediate.leaderboard_rows
