-- One row: how many criteria some tasks have on which a model's response in a
-- trial has no verdict of a judging.
with judged as (
    select verdicts.task_id
    from verdicts
    inner join responses using (response_id)
    where verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $dataset_revision
        and responses.model = $model
        and list_contains($hashes::varchar[], responses.model_config_hash)
        and responses.vintage = $vintage
        and responses.trial = $trial
        and verdicts.judge = $judge
        and verdicts.judge_config_hash = $judge_config_hash
        and verdicts.template_hash = $template_hash
        and verdicts.grading = $grading
        and verdicts.judge_trial = $judge_trial
)

select coalesce(sum(tasks.n_criteria), 0)::bigint as n
from (select unnest($tasks::varchar[]) as task_id)
inner join tasks using (task_id)
anti join judged using (task_id)
where tasks.benchmark = $benchmark and tasks.dataset_revision = $dataset_revision
