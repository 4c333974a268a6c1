-- What is shown: each configured model in its latest sampling that was judged,
-- and in a later one that nobody has judged yet; or in the sampling that is
-- asked for. Best ones first, and last what has no score.
-- begins with: shown_splits, shown_tasks
with answered as (
    select
        model,
        model_config_hash,
        vintage,
        row_number() over (
            partition by model, model_config_hash
            order by min(created_at) desc, vintage desc
        )
        = 1 as is_newest
    from responses
    semi join shown_tasks using (task_id)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and (
            len($models::varchar[]) = 0
            or list_contains($models::varchar[], model)
        )
    group by model, model_config_hash, vintage
),

scored as (
    select
        model,
        model_config_hash,
        vintage,
        round(exact_avg(mean_score), 12) as mean_score
    from leaderboard
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and is_primary
        and (is_latest or $vintage::varchar is not null)
        and split in (select split from shown_splits)
    group by all
)

select
    answered.model,
    answered.model_config_hash,
    answered.vintage,
    scored.mean_score
from answered
left join scored using (model, model_config_hash, vintage)
where
    $vintage::varchar = 'all'
    or answered.vintage = $vintage
    or (
        $vintage::varchar is null
        and (scored.vintage is not null or answered.is_newest)
    )
order by
    scored.mean_score desc nulls last,
    answered.model,
    answered.vintage,
    answered.model_config_hash
