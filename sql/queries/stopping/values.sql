-- One row: a task's score in a vintage of a model under a judging; an imported
-- answer counts where the model's own has none.
select model, vintage, task_id, arg_min(value, model_config_hash = 'imported') as value
from task_scores
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and judge = $judge
    and judge_config_hash = $judge_config_hash
    and template_hash = $template_hash
    and grading = $grading
    and judge_trial = $judge_trial
    and score_name = $score
    and value is not null
    and (
        list_contains($sides::varchar[], vintage || ' ' || model_config_hash || ' ' || model)
        or list_contains($sides::varchar[], vintage || ' imported ' || model)
    )
group by model, vintage, task_id
