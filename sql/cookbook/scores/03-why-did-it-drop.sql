-- On which criteria does the last model lose most against the first one, in
-- points of the score?
with ends as (
    select task_set_id,
        arg_min(model_run_id, rank) as first_series,
        arg_max(model_run_id, rank) as last_series,
        arg_min(model, rank) as first_model,
        arg_max(model, rank) as last_model
    from intermediate.ranks
    inner join intermediate.mean_scores using (figure_id)
    where mean_scores.breakdown = 'all' and mean_scores.is_primary and not is_own_hard
    group by task_set_id, judge, judge_config_hash, template_hash, judge_trial, vintage
    having count(*) > 1
),

met as (
    select model_run_id, benchmark, dataset_revision, task_id, criterion_id,
        avg(value) as met_share
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
inner join met as last_met using (benchmark, dataset_revision, task_id, criterion_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
inner join intermediate.task_set_members using (task_set_id, task_id)
where ends.last_series = last_met.model_run_id and effect < 0
order by effect, criteria.task_id, criteria.criterion_id
limit 20
