-- One row: the latest succession of a pair of judge configurations, with the keys of both.
--
-- built as: view
-- depends on: successions
select distinct on (
    benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading, judge_trial,
    new_judge, new_judge_config_hash, new_template_hash
)
    succession_id,
    benchmark,
    dataset_revision,
    judge,
    new_judge,
    n_drawn,
    look,
    sampled_tasks,
    sampled_runs,
    created_at,
    hash(judge, judge_config_hash, template_hash, grading, judge_trial) as judging_id,
    hash(new_judge, new_judge_config_hash, new_template_hash, grading, 1::bigint) as successor_id
from successions
order by created_at desc, succession_id
