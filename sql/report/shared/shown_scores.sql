-- One row: a row of a leaderboard, whole or under a label, of a model and a
-- judging that are shown.
-- begins with: entries, judgings
select judgings.judging, entries.entry, displayed.*
from staging.displayed_scores as displayed
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where displayed.benchmark = $benchmark and displayed.dataset_revision = $revision
