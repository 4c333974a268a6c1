-- The models and judges whose verdicts come from a tool that stores failed
-- judge calls as decisions.
-- begins with: entries, judgings
select distinct
    entries.entry as model,
    judgings.judge
from staging.leaderboard_rows
inner join entries using (model, model_config_hash, vintage)
inner join judgings
    using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and may_hide_failures
order by judge, model
