-- One row: a response's score in one trial of a judge, on a split on which the vintage is current.
--
-- A judge's trials belong together: a vintage that is current under one of them counts under all.
-- Ternary verdicts that are read as binary ones are no further judge, nor are people who label.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.figure_values, intermediate.mean_scores,
--     intermediate.people_who_label
with scored as (
    select figure_id, is_latest, mean_scores.benchmark, mean_scores.dataset_revision, split,
        score_name, mean_scores.model, mean_scores.model_config_hash, mean_scores.vintage, judge,
        judge_config_hash, template_hash, grading, judge_trial,
        hash(judge, judge_config_hash, template_hash) as judge_key
    from intermediate.mean_scores
    inner join intermediate.current_vintages using (task_set_id, model_run_id)
    anti join intermediate.people_who_label as people
        on mean_scores.benchmark = people.benchmark
            and mean_scores.dataset_revision = people.dataset_revision
            and mean_scores.judge = people.judge
            and mean_scores.judge_config_hash = people.judge_config_hash
    where breakdown = 'all'
        and is_primary
        and not mean_scores.is_own_hard
        and grading <> 'ternary_as_binary'
    qualify
        bool_or(is_latest) over (
            partition by task_set_id, mean_scores.model, mean_scores.model_config_hash,
                mean_scores.vintage, judge_key, grading
        )
),

task_values as (
    select figure_id, task, complete_trials, trial_values
    from intermediate.figure_values
    where breakdown = 'all'
)

select
    scored.benchmark,
    scored.dataset_revision,
    scored.split,
    scored.score_name,
    scored.model,
    scored.model_config_hash,
    scored.vintage,
    scored.grading,
    scored.judge,
    scored.judge_config_hash,
    scored.template_hash,
    scored.judge_key,
    scored.judge_trial,
    task_values.task,
    unnest(task_values.complete_trials) as trial,
    unnest(task_values.trial_values) as value
from scored
inner join task_values using (figure_id)
