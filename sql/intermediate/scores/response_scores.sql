-- One row: a score of a response in a model run, by breakdown and label of the
-- rubric.
--
-- Equations 1 and 3 of the paper, over the whole rubric (breakdown `all`) and
-- over each category and severity. Undecided criteria give bounds, never a value.
--
-- built as: view
-- depends on: intermediate.judge_configs, intermediate.model_runs, intermediate.response_points,
--     intermediate.score_bounds
with wanted as (
    select response_points.*, score_name, offset_points, denominator,
        case when is_expected then expected_points else points end as scored_points
    from intermediate.response_points
    inner join intermediate.score_bounds using (label_key)
    inner join intermediate.model_runs using (model_run_id)
    inner join intermediate.judge_configs using (judging_id)
    where has_probabilities or not is_expected
)

select
    model_run_id,
    response_id,
    task_id,
    trial,
    breakdown,
    label,
    score_name,
    case
        when n_decided = n_wanted then score_of(scored_points, offset_points, denominator)
    end as value,
    score_of(scored_points + undecided_negative, offset_points, denominator) as value_lower,
    score_of(scored_points + undecided_positive, offset_points, denominator) as value_upper,
    n_decided / n_wanted as coverage,
    n_decided = n_wanted as is_complete,
    n_decided,
    n_wanted
from wanted
