-- Of the criteria of the highest severity the share missed, of those of the
-- gravest detrimental one the share committed: of each model on each split,
-- under each judge, the fewest mistakes first.
-- begins with: entries, judgings, shown_splits
select judging, split, is_hard,
    entry as model,
    1 - critical_met_share as missed_share,
    1 - critical_met_ci_high as missed_ci_low,
    1 - critical_met_ci_low as missed_ci_high,
    is_critical_small, n_critical, n_tasks_critical, critical_coverage, mistake_share,
    mistake_ci_low, mistake_ci_high, is_mistake_small, n_mistakes_possible, n_tasks_mistakes,
    mistake_coverage, responses_with_mistake_share, n_responses_at_risk
from severity_leaderboard
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
order by judging <> $main, judging, is_hard, split, mistake_share nulls last,
    missed_share nulls last, model
