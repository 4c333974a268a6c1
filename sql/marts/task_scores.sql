-- A task counts in a series when every trial of the series is complete for it; its value is the mean over them.
with tasks_of_series as (
    select
        score_parts.series_id,
        score_parts.task_id,
        score_parts.score_name,
        count(score_parts.value) as n_complete,
        favg(score_parts.value) as mean_value,
        sum(score_parts.n_decided) as n_decided
    from score_parts
    where score_parts.is_overall
    group by all
),

final as (
    select
        series.series_id,
        series.panel_id,
        series.benchmark,
        series.dataset_revision,
        tasks_of_series.task_id,
        series.model,
        series.model_config_hash,
        series.vintage,
        series.judge,
        series.judge_config_hash,
        series.template_hash,
        series.grading,
        series.judge_trial,
        tasks_of_series.score_name,
        case
            when tasks_of_series.n_complete = series.n_trials
                then tasks_of_series.mean_value
        end as value,
        tasks_of_series.n_complete = series.n_trials as is_complete,
        series.n_trials,
        tasks_of_series.n_decided
    from tasks_of_series
    inner join series using (series_id)
)

select * from final
