-- Which verdicts flipped between two nights of a model, and what is the effect in
-- points?
with judge as (
    -- The judge: the main one. For another one, a condition that leaves one row, such as
    -- `where judge = 'its name' and judge_trial = 1`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

nights as (
    -- The two nights: the current one and the one before. For others, select
    -- their labels here.
    select benchmark, dataset_revision, model, model_config_hash,
        previous_vintage as first_night,
        vintage as second_night,
        list(split) as splits
    from score_history
    natural join judge
    where is_primary and is_latest and previous_vintage is not null
    group by all
),

details as (
    select benchmark, dataset_revision, model, model_config_hash, vintage, judge, task_id, splits,
        trial, criterion_id, title, category, weight, status, value, explanation
    from verdict_details
    natural join judge
    where (model, vintage) in (select model, unnest([first_night, second_night]) from nights)
)

select model, later.judge, nights.first_night, nights.second_night, task_id, trial, later.category,
    later.weight,
    earlier.status as first_status,
    later.status as second_status,
    later.weight * (later.value - earlier.value) as points,
    later.title, later.explanation
from nights
inner join details as later
    using (benchmark, dataset_revision, model, model_config_hash)
inner join details as earlier
    using (
        benchmark, dataset_revision, model, model_config_hash, judge, task_id, trial, criterion_id
    )
where nights.second_night = later.vintage
    and nights.first_night = earlier.vintage
    and list_has_any(nights.splits, later.splits)
    and later.value <> earlier.value
order by points, model, task_id, criterion_id, trial
limit 50
