-- What is shown: each configured model in the latest sampling that the main
-- judge judged, or where it judged none, another one; and in a later one that
-- is not judged yet; or in the sampling that is asked for. Best ones first, and
-- last what has no score.
-- begins with: judgings, shown_splits, shown_tasks
with answered as (
    select model, model_config_hash, vintage,
        row_number() over (
            partition by model, model_config_hash
            order by min(created_at) desc, vintage desc
        ) = 1 as is_newest
    from responses
    semi join shown_tasks using (task_id)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and (len($models::varchar[]) = 0 or list_contains($models::varchar[], model))
    group by model, model_config_hash, vintage
),

scored as (
    select model, model_config_hash, vintage,
        round(exact_avg(mean_score), 12) as mean_score,
        coalesce(bool_or(is_judged and judging = $main), false) as is_of_main
    from leaderboard
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and is_primary
        and (is_latest or $vintage::varchar is not null)
        and split in (select split from shown_splits)
    group by model, model_config_hash, vintage
    qualify $vintage::varchar is not null
        or is_of_main
        or not bool_or(is_of_main) over (partition by model, model_config_hash)
)

select answered.model, answered.model_config_hash, answered.vintage, scored.mean_score
from answered
left join scored using (model, model_config_hash, vintage)
where $vintage::varchar = 'all'
    or answered.vintage = $vintage
    or ($vintage::varchar is null and (scored.vintage is not null or answered.is_newest))
order by scored.mean_score desc nulls last, answered.model, answered.vintage,
    answered.model_config_hash
