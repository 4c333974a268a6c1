-- One row: a score of a model run on a random part of a split; the model was
-- stopped because its comparisons were settled.
--
-- If more tasks were evaluated later, but not all, the missing ones still depend
-- on the first results, so no interval is valid. If all are evaluated (failed
-- ones count), there is no row: the figure covers the whole split.
--
-- built as: view
-- depends on: intermediate.graded_verdicts, intermediate.mean_scores,
--     intermediate.task_set_members, intermediate.task_values,
--     intermediate.wanted_responses, stopping_scores
with parts as (
    select stopping_scores.*, figure_id, task_set_id, series_id, model_run_id,
        mean_scores.n_tasks as n_scored
    from stopping_scores
    inner join intermediate.mean_scores
        using (
            benchmark, dataset_revision, split, judge, judge_config_hash, template_hash, grading,
            judge_trial, vintage, model, model_config_hash, score_name
        )
    where n_tasks_skipped > 0 and breakdown = 'all' and not is_own_hard
),

failed as (
    select figure_id, count(distinct task_id) as n_failed
    from parts
    inner join intermediate.task_set_members using (task_set_id)
    inner join intermediate.task_values using (model_run_id, series_id, task_id)
    inner join intermediate.wanted_responses as responses using (model_run_id, task_id)
    left join (from intermediate.graded_verdicts where value is null) as verdicts
        using (response_id, judging_id)
    where task_values.value is null
        and (responses.status <> 'ok' or verdicts.verdict_id is not null)
    group by figure_id
)

select
    figure_id,
    n_scored + coalesce(n_failed, 0) as n_tasks_tried,
    parts.n_tasks_skipped - greatest(n_tasks_tried - n_tasks_evaluated, 0) as n_tasks_skipped,
    unbiased_mean_score,
    case when n_tasks_tried <= n_tasks_evaluated then sequence_low end as sequence_low,
    case when n_tasks_tried <= n_tasks_evaluated then sequence_high end as sequence_high
from parts
left join failed using (figure_id)
where n_tasks_tried < n_tasks_evaluated + parts.n_tasks_skipped
