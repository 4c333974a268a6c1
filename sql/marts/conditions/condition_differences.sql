-- The p-values of one family are corrected together (Holm): all models,
-- conditions and, under a breakdown, labels on one task set under one judge configuration
-- in one vintage, by one score.
--
-- built as: view
-- depends on: intermediate.condition_responses, intermediate.condition_figures,
--     intermediate.condition_measures
with tested as (
    select figures.*, measures.method, measures.ci_low, measures.ci_high, measures.p_value,
        measures.smallest_detectable, measures.n_differing, measures.is_small
    from intermediate.condition_figures as figures
    left join intermediate.condition_measures as measures
        on figures.figure_id = measures.figure_id
            -- A test is valid only for the values that it was computed from.
            and figures.basis = measures.basis
),

ordered as (
    select *,
        count(p_value) over family as n_comparisons,
        row_number() over (family order by p_value nulls last, figure_id) as holm_rank
    from tested
    window family as (partition by task_set_id, ranking_id, breakdown, score_name)
),

corrected as (
    select *,
        case
            when p_value is not null
                then max(least(1, p_value * (n_comparisons - holm_rank + 1))) over (
                    partition by task_set_id, ranking_id, breakdown, score_name
                    order by holm_rank
                )
        end as p_holm
    from ordered
)

select corrected.benchmark, corrected.dataset_revision, corrected.split, corrected.is_own_hard,
    corrected.judge, corrected.judge_config_hash, corrected.template_hash, corrected.grading,
    corrected.judge_trial, corrected.vintage, corrected.is_latest, corrected.shared_model,
    corrected.condition, corrected.position, corrected.baseline, corrected.model,
    corrected.model_config_hash, corrected.baseline_model, corrected.baseline_config_hash,
    corrected.n_trials, corrected.baseline_n_trials, corrected.score_name, corrected.breakdown,
    corrected.label, corrected.n_tasks, corrected.n_tasks_wanted, corrected.n_differing,
    corrected.baseline_mean_score, corrected.mean_score, corrected.difference, corrected.ci_low,
    corrected.ci_high, corrected.is_small, corrected.p_value, corrected.p_holm,
    corrected.p_holm <= 0.05 as is_significant,
    corrected.n_comparisons, corrected.smallest_detectable, corrected.method,
    responses.* exclude (task_set_id, samplings_id)
from corrected
left join intermediate.condition_responses as responses using (task_set_id, samplings_id)
