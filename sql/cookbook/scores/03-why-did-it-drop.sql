-- Which criteria cost the last model most against the first one, in points of
-- the score?
with ends as (
    select task_set_id,
        arg_min(model_run_id, rank) as first_series,
        arg_max(model_run_id, rank) as last_series,
        arg_min(model, rank) as first_model,
        arg_max(model, rank) as last_model
    from intermediate.ranks
    inner join intermediate.mean_scores
        using (task_set_id, model_run_id, breakdown, label, score_name)
    where mean_scores.breakdown = 'all' and mean_scores.is_primary and not is_own_hard
    group by task_set_id, judge, judge_config_hash, template_hash, judge_trial, vintage
    having count(*) > 1
),

met as (
    select model_run_id, task_id, criterion_id, avg(value) as met_share
    from intermediate.judged_criteria
    group by all
    having count(value) > 0
)

select ends.first_model, ends.last_model, criteria.task_id, criteria.category, criteria.weight,
    first_met.met_share as first_met,
    last_met.met_share as last_met,
    round(
        criteria.weight * (last_met.met_share - first_met.met_share)
        / tasks.positive_weight, 4
    ) as effect,
    criteria.title
from ends
inner join met as first_met on ends.first_series = first_met.model_run_id
inner join met as last_met
    on ends.last_series = last_met.model_run_id
        and first_met.task_id = last_met.task_id
        and first_met.criterion_id = last_met.criterion_id
inner join intermediate.model_runs on ends.first_series = model_runs.model_run_id
inner join criteria
    on model_runs.benchmark = criteria.benchmark
        and model_runs.dataset_revision = criteria.dataset_revision
        and first_met.task_id = criteria.task_id
        and first_met.criterion_id = criteria.criterion_id
inner join tasks
    on criteria.benchmark = tasks.benchmark
        and criteria.dataset_revision = tasks.dataset_revision
        and criteria.task_id = tasks.task_id
inner join intermediate.task_set_members
    on ends.task_set_id = task_set_members.task_set_id
        and criteria.task_id = task_set_members.task_id
where effect < 0
order by effect, criteria.task_id, criteria.criterion_id
limit 20
