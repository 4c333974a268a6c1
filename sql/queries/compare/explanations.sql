-- Why did the judge decide so, on both sides of these criteria, in each trial
-- that counts?
with wanted as (
    select unnest($cells::struct(
        side int, model_run_id ubigint, task_id varchar, criterion_id varchar
    )[], recursive := true)
),

answers as (
    select response_id, model_config_hash from responses
)

select wanted.side, verdicts.task_id, verdicts.criterion_id,
    list(verdicts.explanation order by verdicts.trial) as explanations
from wanted
inner join intermediate.model_runs using (model_run_id)
inner join intermediate.graded_verdicts as verdicts
    using (
        benchmark, dataset_revision, task_id, criterion_id, model, vintage,
        judge, judge_config_hash, template_hash, grading, judge_trial
    )
inner join answers using (response_id, model_config_hash)
inner join criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
inner join intermediate.response_points
    on wanted.model_run_id = response_points.model_run_id
        and verdicts.response_id = response_points.response_id
where response_points.breakdown = 'all' and response_points.n_decided = response_points.n_wanted
group by all
