-- Which tasks of which model run did these runs, or all, make a verdict on?
select made.run_id, model_runs.model_run_id, list(distinct made.task_id) as task_ids
from intermediate.graded_verdicts as made
inner join (select response_id, model_config_hash from responses) as answers using (response_id)
inner join intermediate.model_runs
    using (
        benchmark, dataset_revision, model, model_config_hash, vintage,
        judge, judge_config_hash, template_hash, grading, judge_trial
    )
where made.benchmark = $benchmark
    and ($runs::varchar[] is null or list_contains($runs::varchar[], run_id))
group by made.run_id, model_runs.model_run_id
