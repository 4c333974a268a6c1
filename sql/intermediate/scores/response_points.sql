-- One row: the points of a response of a model run, by breakdown and label of
-- the rubric, and the weights that are undecided. `n_weighted` of its decided criteria
-- have a weight other than 0, so that they can fail, and `n_failed` do.
--
-- Failed responses have rows too: their criteria are wanted and not decided.
--
-- built as: table
-- keeps: model_run_id in (from temp.unchanged_runs)
-- depends on: intermediate.rubric_weights, intermediate.wanted_responses,
--     temp.decided_points, temp.unchanged_runs
select
    wanted.model_run_id,
    wanted.response_id,
    wanted.task_id,
    wanted.trial,
    wanted.is_counted,
    rubric_weights.breakdown,
    rubric_weights.label,
    rubric_weights.label_key,
    coalesce(decided_points.points, 0) as points,
    coalesce(decided_points.expected_points, 0) as expected_points,
    coalesce(decided_points.n_met, 0) as n_met,
    coalesce(decided_points.n_decided, 0) as n_decided,
    coalesce(decided_points.n_weighted, 0) as n_weighted,
    coalesce(decided_points.n_failed, 0) as n_failed,
    rubric_weights.positive,
    rubric_weights.positive - coalesce(decided_points.decided_positive, 0) as undecided_positive,
    rubric_weights.negative - coalesce(decided_points.decided_negative, 0) as undecided_negative,
    rubric_weights.n_wanted,
    decided_points.cost_usd,
    coalesce(decided_points.is_cost_unknown, false) as is_cost_unknown,
    decided_points.response_key is not null as has_verdicts
from intermediate.wanted_responses as wanted
anti join temp.unchanged_runs using (model_run_id)
inner join intermediate.rubric_weights using (benchmark, dataset_revision, task_id)
left join temp.decided_points
    on hash(wanted.response_id) = decided_points.response_key
        and wanted.judging_id = decided_points.judging_id
        and rubric_weights.label_key = decided_points.label_key
