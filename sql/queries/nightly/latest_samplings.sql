-- One row: a model in its latest vintage, or in the one asked for, under a
-- judging.
select distinct model, model_config_hash, vintage, judge, judge_config_hash, template_hash, grading,
    judge_trial
from leaderboard
where benchmark = $benchmark
    and dataset_revision = $revision
    and if($vintage is null, is_latest, vintage = $vintage)
    and counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash)
order by all
