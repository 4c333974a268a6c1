-- For risk owners: the share met of the criteria of the highest severity, and the
-- share of mistakes made among those of the most detrimental severity. The
-- benchmark declares the severities.
--
-- built as: view
-- depends on: intermediate.leaderboard_rows, intermediate.model_runs,
--     intermediate.response_points, intermediate.task_set_members, severities
with extremes as (
    -- The severities of the most important criteria and of the worst mistakes.
    select benchmark,
        arg_max(severity, max_weight) filter (where max_weight > 0) as critical_severity,
        arg_min(severity, min_weight) filter (where min_weight < 0) as mistake_severity
    from severities
    group by benchmark
),

mistakes as (
    select model_run_id, split, is_own_hard,
        count(*) as n_responses,
        count(*) filter (where n_met > 0) as n_with_mistake
    from intermediate.response_points
    inner join intermediate.model_runs using (model_run_id)
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    inner join extremes using (benchmark)
    where breakdown = 'severity'
        and label = mistake_severity
        and n_decided = n_wanted
        and is_counted
    group by all
),

sides as (
    select model_run_id, split, is_own_hard, is_latest,
        coalesce(label = critical_severity, false) as is_critical,
        n_tasks, n_judged, met_share, met_ci_low, met_ci_high, is_met_small, coverage
    from intermediate.leaderboard_rows
    inner join extremes using (benchmark)
    where breakdown = 'severity' and label in (critical_severity, mistake_severity)
),

risks as (
    select model_run_id, split, is_own_hard, is_latest,
        any_value(met_share) filter (is_critical) as critical_met_share,
        any_value(met_ci_low) filter (is_critical) as critical_met_ci_low,
        any_value(met_ci_high) filter (is_critical) as critical_met_ci_high,
        any_value(is_met_small) filter (is_critical) as is_critical_small,
        any_value(n_judged) filter (is_critical) as n_critical,
        any_value(n_tasks) filter (is_critical) as n_tasks_critical,
        any_value(coverage) filter (is_critical) as critical_coverage,
        any_value(met_share) filter (not is_critical) as mistake_share,
        any_value(met_ci_low) filter (not is_critical) as mistake_ci_low,
        any_value(met_ci_high) filter (not is_critical) as mistake_ci_high,
        any_value(is_met_small) filter (not is_critical) as is_mistake_small,
        any_value(n_judged) filter (not is_critical) as n_mistakes_possible,
        any_value(n_tasks) filter (not is_critical) as n_tasks_mistakes,
        any_value(coverage) filter (not is_critical) as mistake_coverage,
        any_value(n_with_mistake / n_responses) as responses_with_mistake_share,
        any_value(n_responses) as n_responses_at_risk
    from sides
    left join mistakes using (model_run_id, split, is_own_hard)
    group by all
)

select
    model_runs.benchmark,
    model_runs.dataset_revision,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    model_runs.vintage,
    model_runs.model,
    model_runs.model_config_hash,
    model_runs.n_trials,
    risks.is_latest,
    risks.split,
    risks.is_own_hard,
    risks.critical_met_share,
    risks.critical_met_ci_low,
    risks.critical_met_ci_high,
    risks.is_critical_small,
    risks.n_critical,
    risks.n_tasks_critical,
    risks.critical_coverage,
    risks.mistake_share,
    risks.mistake_ci_low,
    risks.mistake_ci_high,
    risks.is_mistake_small,
    risks.n_mistakes_possible,
    risks.n_tasks_mistakes,
    risks.mistake_coverage,
    risks.responses_with_mistake_share,
    risks.n_responses_at_risk
from risks
inner join intermediate.model_runs using (model_run_id)
