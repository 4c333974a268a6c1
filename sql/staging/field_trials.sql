-- The trials of a series in one field: splits of different fields may be repeated differently often.
select
    series.series_id,
    tasks.field,
    list_sort(list(distinct responses.trial)) as trials,
    count(distinct responses.trial) as n_trials
from decided_parts
inner join responses using (response_id)
inner join series
    using (
        benchmark, dataset_revision, model, model_config_hash, vintage, judging_id
    )
inner join tasks using (benchmark, dataset_revision, task_id)
where decided_parts.cut = 'all'
group by series.series_id, tasks.field
