-- Where do models fail: of each category's criteria the share that failed, and
-- of all failures the category's share?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select model, vintage, judge, split, category,
    round(failure_rate, 3) as failure_rate,
    round(failure_share, 3) as failure_share,
    n_failed, n_decided
from failure_rates
natural join judge
where is_latest and not is_own_hard
order by model, split, failure_share desc nulls last, category
