-- The p-values of one family are corrected together (Holm): all models,
-- conditions and, under a breakdown, labels on one task set under one judge configuration
-- in one vintage, by one score.
--
-- built as: view
-- depends on: intermediate.condition_responses, intermediate.condition_figures,
--     intermediate.condition_measures
with tested as (
    select figures.*, measures.* exclude (figure_id, basis),
        count(p_value) over family as n_comparisons,
        row_number() over (family order by p_value nulls last, figure_id) as holm_rank
    from intermediate.condition_figures as figures
    -- A test is valid only for the values that it was computed from.
    left join intermediate.condition_measures as measures using (figure_id, basis)
    window family as (partition by task_set_id, ranking_id, breakdown, score_name)
)

select
    tested.benchmark,
    tested.dataset_revision,
    tested.split,
    tested.is_own_hard,
    tested.judge,
    tested.judge_config_hash,
    tested.template_hash,
    tested.grading,
    tested.judge_trial,
    tested.vintage,
    tested.is_latest,
    tested.shared_model,
    tested.condition,
    tested.position,
    tested.baseline,
    tested.model,
    tested.model_config_hash,
    tested.baseline_model,
    tested.baseline_config_hash,
    tested.n_trials,
    tested.baseline_n_trials,
    tested.score_name,
    tested.breakdown,
    tested.label,
    tested.n_tasks,
    tested.n_tasks_wanted,
    tested.n_differing,
    tested.baseline_mean_score,
    tested.mean_score,
    tested.difference,
    tested.ci_low,
    tested.ci_high,
    tested.is_small,
    tested.p_value,
    case
        when p_value is not null
            then max(holm_step(p_value, n_comparisons, holm_rank)) over (
                partition by task_set_id, ranking_id, breakdown, score_name
                order by holm_rank
            )
    end as p_holm,
    p_holm <= 0.05 as is_significant,
    tested.n_comparisons,
    tested.smallest_detectable,
    tested.method,
    responses.n_responses,
    responses.baseline_n_responses,
    responses.n_failed,
    responses.baseline_n_failed,
    responses.n_unpriced,
    responses.baseline_n_unpriced,
    responses.n_tasks_with_response,
    responses.mean_chars_alnum,
    responses.baseline_mean_chars_alnum,
    responses.mean_completion_tokens,
    responses.baseline_mean_completion_tokens,
    responses.mean_cost_usd,
    responses.baseline_mean_cost_usd,
    responses.mean_latency_s,
    responses.baseline_mean_latency_s
from tested
left join intermediate.condition_responses as responses using (task_set_id, samplings_id)
