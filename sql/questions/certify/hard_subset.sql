-- One row: a task of the latest hard selection of a field.
select
    hard_subset.selection_id,
    hard_subset.field,
    hard_subset.task_id,
    hard_subset.rank,
    hard_subset.mean_score,
    hard_subset.n_models,
    strftime(selected_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')
        as selected_at
from hard_subset
inner join staging.latest_selections
    using (benchmark, dataset_revision, field, selection_id)
where benchmark = $benchmark and dataset_revision = $revision
order by hard_subset.field, hard_subset.rank, hard_subset.task_id
