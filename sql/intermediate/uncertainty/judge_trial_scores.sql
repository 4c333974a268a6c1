-- One row: a response's score in one trial of a judge, on a split on which the vintage is current.
--
-- A judge's trials belong together: a vintage that is current under one of them counts under all.
-- Ternary verdicts that are read as binary ones are no further judge, nor are people who label.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.figure_values, intermediate.mean_scores,
--     intermediate.people_who_label
with scored as (
    select figure_id, is_latest, judge_trial,
        hash(task_set_id, scores.model, scores.model_config_hash, scores.vintage, grading)
            as sampling_key,
        hash(sampling_key, judge, judge_config_hash, template_hash) as judge_key
    from intermediate.mean_scores as scores
    inner join intermediate.current_vintages using (task_set_id, model_run_id)
    where breakdown = 'all'
        and is_primary
        and not scores.is_own_hard
        and grading <> 'ternary_as_binary'
        and (scores.benchmark, scores.dataset_revision, judge, judge_config_hash)
        not in (from intermediate.people_who_label)
    qualify bool_or(is_latest) over (partition by judge_key)
)

select
    scored.sampling_key,
    scored.judge_key,
    scored.judge_trial,
    figure_values.figure_id as score_id,
    figure_values.task,
    unnest(figure_values.complete_trials) as trial,
    unnest(figure_values.trial_values) as value
from scored
inner join intermediate.figure_values using (figure_id)
where figure_values.breakdown = 'all'
