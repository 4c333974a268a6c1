-- One row: a score of a model run on a split that rests on a random part of the
-- tasks, since all comparisons of the model were settled.
--
-- Where more tasks have been evaluated since, but not all, which ones are
-- missing still follows from what the first ones showed: then no interval
-- holds. Where all are evaluated (those that failed are as well) there is no
-- row: then the figure rests on no random part any more.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.task_set_members,
--     intermediate.task_values, intermediate.wanted_responses, stopping_scores, verdicts
with parts as (
    select mean_scores.figure_id, mean_scores.task_set_id, mean_scores.model_run_id,
        mean_scores.n_tasks, stopping_scores.judge, stopping_scores.judge_config_hash,
        stopping_scores.template_hash, stopping_scores.grading, stopping_scores.judge_trial,
        stopping_scores.score_name, stopping_scores.n_tasks_evaluated,
        stopping_scores.n_tasks_skipped, stopping_scores.unbiased_mean_score,
        stopping_scores.sequence_low, stopping_scores.sequence_high
    from stopping_scores
    inner join intermediate.mean_scores
        using (
            benchmark, dataset_revision, split, judge, judge_config_hash, template_hash, grading,
            judge_trial, vintage, model, model_config_hash, score_name
        )
    where mean_scores.breakdown = 'all'
        and not mean_scores.is_own_hard
        and stopping_scores.n_tasks_skipped > 0
),

without_value as (
    select parts.figure_id, responses.task_id, responses.response_id, responses.status, parts.judge,
        parts.judge_config_hash, parts.template_hash, parts.grading, parts.judge_trial
    from parts
    inner join intermediate.task_set_members as members using (task_set_id)
    inner join intermediate.task_values
        on parts.model_run_id = task_values.model_run_id
            and members.task_id = task_values.task_id
            and parts.score_name = task_values.score_name
    inner join intermediate.wanted_responses as responses
        on parts.model_run_id = responses.model_run_id and members.task_id = responses.task_id
    where task_values.breakdown = 'all' and task_values.value is null
),

failed as (
    select without_value.figure_id, count(distinct without_value.task_id) as n_failed
    from without_value
    left join verdicts
        on without_value.response_id = verdicts.response_id
            and without_value.judge = verdicts.judge
            and without_value.judge_config_hash = verdicts.judge_config_hash
            and without_value.template_hash = verdicts.template_hash
            and without_value.grading = verdicts.grading
            and without_value.judge_trial = verdicts.judge_trial
            and verdicts.value is null
    where without_value.status <> 'ok' or verdicts.verdict_id is not null
    group by without_value.figure_id
),

counted as (
    select parts.*, parts.n_tasks + coalesce(failed.n_failed, 0) as n_tasks_tried
    from parts
    left join failed using (figure_id)
)

select figure_id, n_tasks_evaluated,
    least(n_tasks_skipped, n_tasks_evaluated + n_tasks_skipped - n_tasks_tried) as n_tasks_skipped,
    unbiased_mean_score,
    case when n_tasks_tried <= n_tasks_evaluated then sequence_low end as sequence_low,
    case when n_tasks_tried <= n_tasks_evaluated then sequence_high end as sequence_high
from counted
where n_tasks_tried < n_tasks_evaluated + n_tasks_skipped
