-- What is ranked: each configured model in its latest sampling, or in the one that is asked for, best ones first.
select
    model,
    model_config_hash,
    vintage,
    min(latest_rank) as best_rank,
    avg(mean_score) as mean_score
from leaderboard
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and is_primary
    and (len($models::varchar[]) = 0 or list_contains($models::varchar[], model))
    and (
        $vintage::varchar = 'all' or vintage = $vintage
        or ($vintage::varchar is null and is_latest)
    )
group by all
order by avg(mean_score) desc nulls last, model, vintage, model_config_hash
