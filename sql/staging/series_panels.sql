-- Which series are ranked against each other: those of one vintage, and the latest of every model, whatever its vintage:
-- models that are sampled anew each night stand beside those that are not. Where all are of one vintage, both are the same.
with own as (
    select
        series_id,
        panel_id,
        is_latest,
        true as is_own,
        hash(benchmark, dataset_revision, 'latest', judging_id) as latest_id,
        count(distinct vintage) over (
            partition by benchmark, dataset_revision, judging_id
        ) as n_vintages
    from series
)

select
    series_id,
    panel_id,
    true as is_own,
    is_latest and n_vintages = 1 as is_of_latest
from own
union all
select
    series_id,
    latest_id as panel_id,
    false as is_own,
    true as is_of_latest
from own
where is_latest and n_vintages > 1
