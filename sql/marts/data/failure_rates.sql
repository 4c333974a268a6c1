-- Failed criteria of each category, as a share of its decided criteria
-- (`failure_rate`), and of all failed criteria (`failure_share`, which adds up to
-- 1). A positive criterion fails if it is not met, a negative one if it is met; a
-- partly met one does not fail. Published figures of this name may differ: means
-- over the tasks with a failure, which count a mistake that was not made as one.
--
-- built as: view
-- depends on: intermediate.current_verdicts, intermediate.model_runs,
--     intermediate.task_set_members, responses
with decided as (
    select model_runs.model_run_id, members.task_set_id, members.split, members.is_own_hard,
        current_verdicts.category,
        case when weight > 0 then value = 0 else value = 1 end as is_failed
    from intermediate.current_verdicts
    inner join responses using (response_id, benchmark, dataset_revision)
    inner join intermediate.model_runs
        using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
    inner join intermediate.task_set_members as members
        on current_verdicts.benchmark = members.benchmark
            and current_verdicts.dataset_revision = members.dataset_revision
            and current_verdicts.task_id = members.task_id
    where value is not null and weight <> 0
),

counted as (
    select model_run_id, task_set_id, split, is_own_hard, category,
        count(*) as n_decided,
        count(*) filter (is_failed) as n_failed
    from decided
    group by all
)

select model_runs.benchmark, model_runs.dataset_revision, counted.split, counted.is_own_hard,
    model_runs.judge, model_runs.judge_config_hash, model_runs.template_hash, model_runs.grading,
    model_runs.judge_trial, model_runs.vintage, model_runs.model, model_runs.model_config_hash,
    model_runs.is_latest, counted.category, counted.n_decided, counted.n_failed,
    counted.n_failed / counted.n_decided as failure_rate,
    counted.n_failed
    / nullif(
        sum(counted.n_failed) over (partition by counted.model_run_id, counted.task_set_id),
        0
    ) as failure_share
from counted
inner join intermediate.model_runs using (model_run_id)
