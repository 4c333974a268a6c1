-- What the models' tasks are worth that hard selections and a split share: split by split and series by series, also
-- the tasks that are not complete, or not there, with what they could be worth.
with selected as (
    select distinct benchmark, dataset_revision, task_id
    from hard_subset
    where list_contains($selections::varchar[], selection_id)
),

wanted as (
    select
        split_members.split,
        series.*,
        part_bounds.task_id,
        part_bounds.lowest,
        part_bounds.highest,
        part_bounds.n_wanted
        * coalesce(field_trials.n_trials, series.n_trials) as n_wanted
    from selected
    inner join split_members using (benchmark, dataset_revision, task_id)
    inner join tasks using (benchmark, dataset_revision, task_id)
    inner join part_bounds using (benchmark, dataset_revision, task_id)
    inner join series using (benchmark, dataset_revision)
    left join field_trials
        on
            series.series_id = field_trials.series_id
            and tasks.field is not distinct from field_trials.field
    where part_bounds.cut = 'all' and part_bounds.score_name = $score
),

final as (
    select
        wanted.split,
        wanted.model,
        wanted.model_config_hash,
        wanted.judge,
        wanted.judge_config_hash,
        wanted.template_hash,
        wanted.grading,
        wanted.judge_trial,
        wanted.vintage,
        wanted.n_trials,
        count(*) as n_tasks_wanted,
        list(task_parts.value order by wanted.task_id)
            filter (where task_parts.is_complete) as task_values,
        fsum(coalesce(task_parts.value_lower, wanted.lowest)) / count(*)
            as mean_lower,
        fsum(coalesce(task_parts.value_upper, wanted.highest)) / count(*)
            as mean_upper,
        coalesce(sum(task_parts.n_decided), 0) / sum(wanted.n_wanted)
            as coverage
    from wanted
    left join task_parts
        on
            wanted.series_id = task_parts.series_id
            and wanted.task_id = task_parts.task_id
            and task_parts.cut = 'all'
            and task_parts.score_name = $score
    where
        (
            len($splits::varchar[]) = 0
            or list_contains($splits::varchar[], wanted.split)
        )
        and (
            len($models::varchar[]) = 0
            or list_contains($models::varchar[], wanted.model)
        )
        and (
            len($judges::varchar[]) = 0
            or list_contains($judges::varchar[], wanted.judge)
        )
        and (
            $vintage::varchar = 'all' or wanted.vintage = $vintage
            or ($vintage::varchar is null and wanted.is_latest)
        )
    group by all
)

select * from final
order by all
