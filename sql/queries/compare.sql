-- name: flips
-- One row: a criterion with its verdicts in two model runs, by complete trial and
-- as their mean, and the points of the change. If no trial is complete, the task
-- counts for neither run, and the mean is over the decided verdicts. A criterion
-- is the same in two revisions if its content is.
with sides as (
    select model_runs.*, side from intermediate.model_runs
    inner join (values (1, $first::ubigint), (2, $second::ubigint))
        as chosen (side, model_run_id) using (model_run_id)
),

rubrics as (
    select criteria.*,
        -- A rubric may have two criteria with the same content.
        row_number() over (
            partition by benchmark, dataset_revision, task_id, content_hash
            order by position
        ) as occurrence
    from criteria
    where weight is not null
),

decisions as (
    select sides.side, verdicts.task_id, verdicts.criterion_id,
        verdicts.criterion_hash as content_hash,
        -- `list` is NULL if nothing passes its filter, as without a complete trial.
        coalesce(
            list(verdicts.value order by verdicts.trial) filter (
                response_points.n_decided = response_points.n_wanted
            ),
            list(verdicts.value order by verdicts.trial) filter (verdicts.value is not null)
        ) as by_trial,
        coalesce(
            list(verdicts.explanation order by verdicts.trial) filter (
                response_points.n_decided = response_points.n_wanted
                and verdicts.explanation is not null
            ),
            []
        ) as explanations
    from intermediate.graded_verdicts as verdicts
    inner join sides using (judging_id)
    inner join intermediate.response_points using (model_run_id, response_id)
    where response_points.breakdown = 'all' and response_points.is_counted
    group by all
),

cells as (
    select sides.side, rubrics.task_id, rubrics.content_hash, rubrics.occurrence,
        rubrics.criterion_id, rubrics.title,
        coalesce(rubrics.category, '(none)') as category,
        rubrics.weight,
        rubrics.weight / score_bounds.denominator as worth,
        decisions.by_trial, decisions.explanations,
        list_avg(decisions.by_trial) as value
    from sides
    inner join rubrics using (benchmark, dataset_revision)
    inner join intermediate.score_bounds using (benchmark, dataset_revision, task_id)
    left join decisions using (side, task_id, criterion_id, content_hash)
    where score_bounds.breakdown = 'all' and score_bounds.score_name = $score
)

select task_id,
    coalesce(second.criterion_id, first.criterion_id) as criterion_id,
    coalesce(second.title, first.title) as title,
    coalesce(second.category, first.category) as category,
    coalesce(second.weight, first.weight) as weight,
    first.value as first_value,
    second.value as second_value,
    first.by_trial as first_by_trial,
    second.by_trial as second_by_trial,
    first.explanations as first_explanations,
    second.explanations as second_explanations,
    second.worth * (second.value - first.value) as effect,
    first.task_id is not null and second.task_id is not null as is_in_both
from (from cells where side = 1) as first
full join (from cells where side = 2) as second using (task_id, content_hash, occurrence)
order by effect, task_id, criterion_id;

-- name: model_runs
-- One row: a model run, with the times of its last response and verdict, the
-- splits (or with `$is_hard` the hard selections that users made of this data) that
-- it has verdicts on, and those on which its vintage is the current one.
with boards as (
    select model_run_id,
        list(split) filter (is_judged) as splits,
        list(split) filter (is_judged and is_latest) as current_splits
    from intermediate.leaderboard_rows
    where breakdown = 'all' and is_primary and is_own_hard = $is_hard
    group by model_run_id
)

select model_runs.*,
    -- The empty list: no judge was named.
    counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash) as is_by_judge,
    last_response_at as responded_at,
    last_verdict_at as judged_at,
    coalesce(splits, []) as splits,
    coalesce(current_splits, []) as current_splits
from intermediate.model_runs
left join boards using (model_run_id)
-- Not the binary readings of ternary verdicts: they would repeat each
-- comparison, and the correction would count both.
where benchmark = $benchmark and grading <> 'ternary_as_binary'
-- Ordered by names, so that the same comparison has the same result.
order by vintage, judge, judge_trial, template_hash, judge_config_hash, grading,
    model, model_config_hash, dataset_revision;

-- name: runs
-- One row: a model run with verdicts by one of these runs (or any run), with the
-- tasks of these verdicts.
select judged_by_run.run_id, model_runs.model_run_id,
    list(distinct judged_by_run.task_id) as task_ids
from intermediate.graded_verdicts as judged_by_run
inner join (select response_id, model_config_hash from responses) as model_config_hashes
    using (response_id)
inner join intermediate.model_runs
    using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
where judged_by_run.benchmark = $benchmark
    and ($runs is null or list_contains($runs, run_id))
group by judged_by_run.run_id, model_runs.model_run_id;

-- name: values
-- The value of each task of each task set in these model runs; NULL if no trial is
-- complete.
with split_tasks as (
    select benchmark, dataset_revision, split, task_id
    from intermediate.task_set_members
    where benchmark = $benchmark
        and is_own_hard = $is_hard
        and ($is_hard or is_among($splits, split))
),

run_values as (
    select model_run_id, task_id, mean_score as value
    from task_scores
    where list_contains($model_runs, model_run_id) and score_name = $score
)

select split, model_run_id, task_id, run_values.task_id is not null as has_response, value
from intermediate.model_runs
inner join split_tasks using (benchmark, dataset_revision)
left join run_values using (model_run_id, task_id)
where list_contains($model_runs, model_run_id)
order by split, task_id, model_run_id;

-- name: models_on_random_parts
-- One row: a model of these model runs that was evaluated on a random part of the tasks of a
-- split, whose size depended on the results.
select distinct mean_scores.model
from intermediate.random_parts
inner join intermediate.mean_scores using (figure_id)
where list_contains($model_runs, mean_scores.model_run_id)
order by mean_scores.model;

-- name: condition_sets
-- One row: a model with its conditions, as configured for a benchmark.
select
    $conditions_of::varchar as benchmark,
    unnest(
        from_json(
            $conditions::json,
            '[{
                "shared_model": "VARCHAR", "condition_names": ["VARCHAR"],
                "condition_models": ["VARCHAR"]
            }]'
        ),
        recursive := true
    );

-- name: condition_tests
-- One row: a measure of a difference between conditions: the newly computed one,
-- else the stored one.
with fresh as (
    select unnest(from_json($fresh::json, '[{
        "figure_id": "VARCHAR", "basis": "VARCHAR", "method": "VARCHAR", "measure": "VARCHAR",
        "value": "DOUBLE", "ci_low": "DOUBLE", "ci_high": "DOUBLE", "p_value": "DOUBLE",
        "n": "BIGINT", "is_small": "BOOLEAN"
    }]'), recursive := true)
)

select * from fresh
union all by name
select * exclude (note, created_at) from measures
where measure in ('difference', 'smallest_detectable')
    and figure_id not in (select figure_id from fresh);
