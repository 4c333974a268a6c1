-- What a risk owner asks first: of the criteria of the highest severity, the share met; of those of the gravest
-- detrimental one, the share committed. Which severities these are is what the benchmark declares.
with extremes as (
    select
        benchmark,
        arg_max(severity, max_weight) filter (where max_weight > 0) as gravest_good,
        arg_min(severity, min_weight) filter (where min_weight < 0) as gravest_bad
    from severities
    group by benchmark
),

mistakes as (
    select
        boards.board_id,
        response_parts.series_id,
        count(*) as n_responses,
        count(*) filter (where response_parts.n_met > 0) as n_with_mistake
    from response_parts
    inner join series using (series_id)
    inner join boards
        on
            series.benchmark = boards.benchmark
            and series.dataset_revision = boards.dataset_revision
            and response_parts.task_id = boards.task_id
    inner join extremes
        on
            series.benchmark = extremes.benchmark
            and response_parts.label = extremes.gravest_bad
    where
        response_parts.cut = 'severity'
        and response_parts.n_decided = response_parts.n_wanted
    group by all
),

sides as (
    select distinct
        cut_rows.board_id,
        cut_rows.series_id,
        cut_rows.benchmark,
        cut_rows.dataset_revision,
        cut_rows.split,
        cut_rows.is_own_hard,
        cut_rows.judge,
        cut_rows.judge_config_hash,
        cut_rows.template_hash,
        cut_rows.grading,
        cut_rows.judge_trial,
        cut_rows.vintage,
        cut_rows.model,
        cut_rows.model_config_hash,
        cut_rows.n_trials,
        series.is_latest,
        cut_rows.label = extremes.gravest_good as is_good,
        cut_rows.n_tasks,
        cut_rows.n_judged,
        cut_rows.met_share,
        intervals.met_ci_low,
        intervals.met_ci_high,
        intervals.is_met_small,
        cut_rows.coverage
    from cut_rows
    inner join series using (series_id)
    inner join series_costs using (board_id, series_id)
    inner join extremes
        on
            cut_rows.benchmark = extremes.benchmark
            and cut_rows.label in (extremes.gravest_good, extremes.gravest_bad)
    left join intervals
        on
            cut_rows.figure_id = intervals.figure_id
            and cut_rows.basis = intervals.basis
    where cut_rows.cut = 'severity' and series_costs.is_judged
),

final as (
    select
        sides.benchmark,
        sides.dataset_revision,
        sides.split,
        sides.is_own_hard,
        sides.judge,
        sides.judge_config_hash,
        sides.template_hash,
        sides.grading,
        sides.judge_trial,
        sides.vintage,
        sides.model,
        sides.model_config_hash,
        sides.n_trials,
        sides.is_latest,
        any_value(met_share) filter (where is_good) as critical_met_share,
        any_value(met_ci_low) filter (where is_good) as critical_met_ci_low,
        any_value(met_ci_high) filter (where is_good) as critical_met_ci_high,
        any_value(is_met_small) filter (where is_good) as is_critical_small,
        any_value(n_judged) filter (where is_good) as n_critical,
        any_value(n_tasks) filter (where is_good) as n_tasks_critical,
        any_value(coverage) filter (where is_good) as critical_coverage,
        any_value(met_share) filter (where not is_good) as mistake_share,
        any_value(met_ci_low) filter (where not is_good) as mistake_ci_low,
        any_value(met_ci_high) filter (where not is_good) as mistake_ci_high,
        any_value(is_met_small) filter (where not is_good) as is_mistake_small,
        any_value(n_judged) filter (where not is_good) as n_mistakes_possible,
        any_value(n_tasks) filter (where not is_good) as n_tasks_mistakes,
        any_value(coverage) filter (where not is_good) as mistake_coverage,
        any_value(n_with_mistake / n_responses) as responses_with_mistake_share,
        any_value(n_responses) as n_responses_at_risk
    from sides
    left join mistakes using (board_id, series_id)
    group by all
)

select * from final
