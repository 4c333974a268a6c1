-- Which criteria the answers of each model fail, by category, on each split and
-- under each judge: the category that fails most often first. A positive
-- criterion fails when it is not met, a negative one when it is met.
-- begins with: entries, judgings, shown_splits
select judging, split, is_hard,
    category as label,
    entry as model,
    failure_rate, failure_share, n_failed, n_decided
from failure_rates
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
order by judging <> $main, judging, is_hard, split,
    round(avg(failure_rate) over (partition by judging, split, label), 9) desc, label, model
