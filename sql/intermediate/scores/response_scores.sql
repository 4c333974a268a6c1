-- One row: a score of a response in a model run, by breakdown and label of the
-- rubric.
--
-- Equations 1 and 3 of the paper, over the whole rubric (breakdown `all`) and
-- over each category and severity. Undecided criteria give bounds, never a
-- value.
--
-- built as: view
-- depends on: intermediate.response_points, intermediate.score_bounds
select response_points.model_run_id, response_points.response_id, response_points.task_id,
    response_points.trial, response_points.n_trials, response_points.breakdown,
    response_points.label, score_bounds.score_name,
    case
        when n_decided = response_points.n_wanted
            then score_of(points, offset_points, denominator)
    end as value,
    score_of(points + undecided_negative, offset_points, denominator) as value_lower,
    score_of(points + undecided_positive, offset_points, denominator) as value_upper,
    score_bounds.lowest, score_bounds.highest,
    n_decided / response_points.n_wanted as coverage,
    n_decided = response_points.n_wanted as is_complete,
    n_met, n_decided, response_points.n_wanted
from intermediate.response_points
inner join intermediate.score_bounds using (label_key)
