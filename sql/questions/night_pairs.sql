-- The models that were sampled anew in a night, each with its last comparable vintage: the last night, or the pinned
-- sampling, with at least half as many answers. One that was cut short is no measure.
with vintages as (
    select
        model,
        model_config_hash,
        vintage,
        min(created_at) as first_answered_at,
        count(*) filter (status = 'ok') as n_answers
    from responses
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and (
            vintage = 'base'
            or vintage in (select night from runs where night is not null)
        )
    group by all
)

select
    tonight.model,
    arg_max(earlier.vintage, earlier.first_answered_at) as last_vintage
from vintages as tonight
inner join vintages as earlier
    using (model, model_config_hash)
where
    tonight.vintage = $night
    and earlier.vintage <> $night
    and earlier.first_answered_at < tonight.first_answered_at
    and 2 * earlier.n_answers >= tonight.n_answers
group by tonight.model, tonight.model_config_hash
order by tonight.model
