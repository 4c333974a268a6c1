-- On which criteria does the last model lose most against the first one, in
-- points of the score?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

ends as (
    select benchmark, dataset_revision, split,
        arg_min(model, latest_rank) as first_model,
        arg_min(model_config_hash, latest_rank) as first_config,
        arg_max(model, latest_rank) as last_model,
        arg_max(model_config_hash, latest_rank) as last_config
    from leaderboard
    natural join judge
    where is_primary and is_latest
    group by all
    having count(latest_rank) > 1
),

decided as (
    select benchmark, dataset_revision, judge, model, model_config_hash, vintage, task_id,
        latest_splits, criterion_id, title, category, weight,
        avg(value) as met_share
    from verdict_details
    natural join judge
    where model in (select unnest([first_model, last_model]) from ends)
    group by all
    having count(value) > 0
)

select ends.split, first_decided.judge, ends.first_model,
    first_decided.vintage as first_vintage,
    ends.last_model,
    last_decided.vintage as last_vintage,
    task_id, first_decided.category, first_decided.weight,
    first_decided.met_share as first_met,
    last_decided.met_share as last_met,
    round(
        first_decided.weight * (last_decided.met_share - first_decided.met_share)
        / tasks.positive_weight, 4
    ) as effect,
    first_decided.title
from ends
inner join decided as first_decided using (benchmark, dataset_revision)
inner join decided as last_decided
    using (benchmark, dataset_revision, judge, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where ends.first_model = first_decided.model
    and ends.first_config = first_decided.model_config_hash
    and list_contains(first_decided.latest_splits, ends.split)
    and ends.last_model = last_decided.model
    and ends.last_config = last_decided.model_config_hash
    and list_contains(last_decided.latest_splits, ends.split)
    and effect < 0
order by effect, ends.split, task_id, criterion_id
limit 20
