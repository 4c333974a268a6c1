-- One row: a model run, and whether its results are current.
--
-- If a label of a model or judge has several configurations, only the one that
-- was used last is current: its responses, or its verdicts, are the newest.
--
-- built as: view
-- depends on: intermediate.judge_configs, intermediate.model_runs
select model_run_id,
    is_latest
    and judging_id = arg_max(judging_id, last_verdict_at) over (
        partition by benchmark, dataset_revision, judge, grading, judge_trial
    )
    and model_config_hash = arg_max(model_config_hash, first_response_at) over (
        partition by benchmark, dataset_revision, judging_id, model
    ) as is_current
from intermediate.model_runs
inner join intermediate.judge_configs
    using (judging_id, judge, judge_config_hash, template_hash, grading, judge_trial)
