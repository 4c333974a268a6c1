-- The models and judges whose verdicts come from a tool that stores failed
-- judge calls as decisions, or of which that is not known.
-- begins with: entries, judgings
select distinct
    entries.entry as model,
    judgings.judge,
    leaderboard_rows.may_hide_failures is not null as is_known
from staging.leaderboard_rows
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark
    and dataset_revision = $revision
    and leaderboard_rows.is_judged
    and coalesce(leaderboard_rows.may_hide_failures, true)
order by judge, is_known desc, model
