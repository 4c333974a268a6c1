-- Which models lead, with interval and coverage?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select benchmark, split, judge, vintage,
    latest_rank as rank,
    model,
    round(mean_score, 3) as score,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    round(coverage, 3) as coverage,
    latest_rank_low || ' to ' || latest_rank_high as possible_ranks,
    round(raw_mean_score, 3) as before_clipping,
    n_tasks, n_tasks_full, n_tasks_wanted
from leaderboard
natural join judge
where is_primary and is_latest
order by benchmark, split, rank nulls last, score desc, model
