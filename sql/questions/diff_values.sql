-- What is each task of each set of tasks worth in these series? NULL unless
-- a trial is complete.
with places as (
    select benchmark, dataset_revision, split, task_id from boards
    where
        benchmark = $benchmark
        and is_own_hard = $is_hard
        and (
            $is_hard
            or len($splits::varchar[]) = 0
            or list_contains($splits::varchar[], split)
        )
),

chosen as (
    select series_id, benchmark, dataset_revision from series
    where list_contains($series::ubigint[], series_id)
),

of_series as (
    select
        series_id,
        task_id,
        value
    from task_scores
    where
        list_contains($series::ubigint[], series_id)
        and score_name = $score
),

final as (
    select
        places.split,
        chosen.series_id,
        places.task_id,
        of_series.task_id is not null as is_answered,
        of_series.value
    from chosen
    inner join places using (benchmark, dataset_revision)
    left join of_series using (series_id, task_id)
    order by places.split, places.task_id, chosen.series_id
)

select * from final
