-- One row: a model's rank under a label on a task set, and the ranks that the
-- intervals allow.
--
-- The best possible rank is the next after the models whose whole interval is
-- above its own; the worst is the last before those whose whole interval is
-- below. Without an interval every rank is possible. Intervals use each model's
-- own tasks and ranks the shared ones; the range includes the rank anyway.
--
-- A model is first, or may be first, unless a paired test shows the first one
-- ahead. Only whole rubrics are tested.
--
-- built as: table
-- depends on: intermediate.lead_tests, intermediate.ranking_positions,
--     intermediate.score_intervals
with positioned as (
    from intermediate.ranking_positions
    inner join intermediate.score_intervals using (figure_id)
),

ranged as (
    select one.compared_key, one.figure_id, one.is_own, one.is_of_latest,
        one.n_tasks_ranked, one.rank,
        least(max(one.rank), 1 + count(*) filter (other.ci_low > one.ci_high)) as rank_low,
        greatest(max(one.rank), count(*) - count(*) filter (other.ci_high < one.ci_low))
            as rank_high
    from positioned as one
    inner join positioned as other using (compared_key)
    group by all
)

select
    ranged.figure_id,
    max(columns('^(n_tasks_ranked|rank.*)$')) filter (ranged.is_own) as '\0',
    max(n_tasks_ranked) filter (ranged.is_of_latest) as n_tasks_latest_ranked,
    max(columns('^rank')) filter (ranged.is_of_latest) as 'latest_\0',
    bool_or(rank = 1 or may_be_first) filter (ranged.is_own) as may_be_first,
    bool_or(rank = 1 or may_be_first) filter (ranged.is_of_latest) as latest_may_be_first
from ranged
left join intermediate.lead_tests as tests
    on ranged.compared_key = tests.compared_key and ranged.figure_id = tests.figure_id
group by all
