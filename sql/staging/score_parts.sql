-- Equations 1 and 3 of the paper: every score of every response in every series, over its whole rubric (cut `all`) and
-- over each category and severity. Undecided criteria give bounds, never a value.
select
    response_parts.series_id,
    response_parts.response_id,
    response_parts.task_id,
    response_parts.trial,
    response_parts.n_trials,
    response_parts.cut,
    response_parts.label,
    part_bounds.score_name,
    case
        when n_decided = response_parts.n_wanted
            then (points + offset_points) / denominator
    end as value,
    (points + undecided_negative + offset_points) / denominator as value_lower,
    (points + undecided_positive + offset_points) / denominator as value_upper,
    part_bounds.lowest,
    part_bounds.highest,
    n_decided / response_parts.n_wanted as coverage,
    n_decided = response_parts.n_wanted as is_complete,
    n_met,
    n_decided,
    response_parts.n_wanted
from response_parts
inner join series using (series_id)
inner join part_bounds
    on
        series.benchmark = part_bounds.benchmark
        and series.dataset_revision = part_bounds.dataset_revision
        and response_parts.task_id = part_bounds.task_id
        and response_parts.cut = part_bounds.cut
        and response_parts.label = part_bounds.label
