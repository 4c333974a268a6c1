-- How many critical criteria does a model meet, and how many critical mistakes
-- does it make?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select split, model, vintage, judge,
    round(critical_met_share, 3) as critical_met_share,
    n_critical,
    round(mistake_share, 3) as mistake_share,
    n_mistakes_possible,
    round(responses_with_mistake_share, 3) as responses_with_mistake_share
from severity_leaderboard
natural join judge
where not is_own_hard and is_latest
order by split, mistake_share, model
