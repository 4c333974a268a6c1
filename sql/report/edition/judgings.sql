-- Who judged: every judge with its configuration, template, grading and
-- repetition, those with most verdicts first.
-- begins with: shown_splits
select judge, judge_config_hash, template_hash, grading, judge_trial, sum(n_tasks) as n_tasks
from leaderboard
where benchmark = $benchmark
    and dataset_revision = $revision
    and is_primary
    and split in (select split from shown_splits)
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
group by all
order by n_tasks desc, judge, judge_trial, grading, template_hash, judge_config_hash
