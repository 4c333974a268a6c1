-- One row: a model's mean of a score under a label on a task set (equations 2
-- and 4).
--
-- The mean is over the tasks with at least one complete trial. If the score is
-- clipped, the mean is clipped, never a task's value. Coverage and bounds are
-- over all wanted cells: every task in every trial of the model run. Breakdown
-- `all` is the whole task set.
--
-- built as: table
-- keeps: model_run_id in (from temp.unchanged_runs)
-- depends on: intermediate.breakdown_sizes, intermediate.breakdown_values,
--     intermediate.model_runs, intermediate.task_set_members, temp.unchanged_runs
with means as (
    select task_set_id, series_id,
        count(value) as n_tasks,
        count(*) filter (is_complete) as n_tasks_full,
        exact_avg(value) as raw_mean_score,
        exact_sum(value_lower) as sum_lower,
        exact_sum(value_upper) as sum_upper,
        exact_sum(lowest) as sum_lowest_seen,
        exact_sum(highest) as sum_highest_seen,
        sum(n_decided)::bigint as n_decided,
        sum(n_met) as n_met,
        sum(n_judged)::bigint as n_judged,
        -- It changes with any value, trial or task of the figure.
        bit_xor(hash(task_id, complete_trials, trial_values, n_met, n_judged))
            filter (value is not null) as basis
    from intermediate.breakdown_values
    anti join temp.unchanged_runs using (model_run_id)
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    group by all
),

sizes as (
    select breakdown_sizes.*, model_runs.model_run_id,
        -- as in breakdown_values
        hash(model_run_id, breakdown, label, score_name) as series_id,
        n_criteria_wanted * model_runs.n_trials as n_verdicts_wanted
    from intermediate.breakdown_sizes
    inner join intermediate.model_runs using (benchmark, dataset_revision)
    anti join temp.unchanged_runs using (model_run_id)
)

select
    task_set_id,
    series_id,
    model_run_id,
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    names.judge,
    names.judge_config_hash,
    names.template_hash,
    names.grading,
    names.judge_trial,
    names.vintage,
    names.model,
    names.model_config_hash,
    score_name,
    is_primary,
    is_expected,
    mean_floor,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    n_tasks_annotated,
    n_tasks_full = n_tasks_wanted as is_complete,
    names.n_trials,
    raw_mean_score,
    n_decided / n_verdicts_wanted as coverage,
    n_met / n_judged as met_share,
    n_judged,
    basis::varchar as basis,
    figure_key([
        benchmark, dataset_revision, split, is_own_hard::varchar, breakdown, label, judge,
        judge_config_hash, template_hash, grading, judge_trial::varchar, vintage, model,
        model_config_hash, score_name
    ]) as figure_id,
    if(raw_mean_score < mean_floor, mean_floor, raw_mean_score) as mean_score,
    -- A task without a response can still get any possible value.
    if(
        is_complete,
        mean_score,
        greatest((sum_lower + sum_lowest - sum_lowest_seen) / n_tasks_wanted, mean_floor)
    ) as mean_lower,
    if(
        is_complete,
        mean_score,
        greatest((sum_upper + sum_highest - sum_highest_seen) / n_tasks_wanted, mean_floor)
    ) as mean_upper
from means
inner join sizes using (task_set_id, series_id)
inner join intermediate.model_runs as names using (model_run_id, benchmark, dataset_revision)
