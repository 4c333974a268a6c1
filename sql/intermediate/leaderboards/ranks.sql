-- One row: a model's rank under a label on a task set, and the ranks that the
-- intervals allow, in its vintage and (`latest_`) among current vintages.
--
-- The best possible rank is the next after the models whose whole interval is
-- above its own; the worst is the last before those whose whole interval is
-- below. Without an interval every rank is possible. Intervals use each model's
-- own tasks and ranks the shared ones; the range includes the rank anyway.
--
-- A model may be first if it is, or if a paired test does not show the first one
-- ahead. Only whole rubrics are tested.
--
-- built as: table
-- depends on: intermediate.lead_tests, intermediate.ranking_positions,
--     intermediate.score_intervals
with positioned as (
    from intermediate.ranking_positions
    inner join intermediate.score_intervals using (figure_id)
),

compared as (
    select positioned.compared_key, positioned.figure_id, positioned.is_own,
        positioned.is_of_latest, positioned.n_tasks_ranked, positioned.rank,
        count(*) as n_models,
        count(*) filter (rivals.ci_low > positioned.ci_high) as n_above,
        count(*) filter (rivals.ci_high < positioned.ci_low) as n_below
    from positioned
    inner join positioned as rivals using (compared_key)
    group by all
),

ranged as (
    select *,
        least(rank, 1 + n_above) as rank_low,
        greatest(rank, n_models - n_below) as rank_high
    from compared
)

select
    figure_id,
    max(n_tasks_ranked) filter (is_own) as n_tasks_ranked,
    max(rank) filter (is_own) as rank,
    max(rank_low) filter (is_own) as rank_low,
    max(rank_high) filter (is_own) as rank_high,
    max(n_tasks_ranked) filter (is_of_latest) as n_tasks_latest_ranked,
    max(rank) filter (is_of_latest) as latest_rank,
    max(rank_low) filter (is_of_latest) as latest_rank_low,
    max(rank_high) filter (is_of_latest) as latest_rank_high,
    bool_or(rank = 1 or may_be_first) filter (is_own) as may_be_first,
    bool_or(rank = 1 or may_be_first) filter (is_of_latest) as latest_may_be_first
from ranged
left join intermediate.lead_tests using (compared_key, figure_id)
group by all
