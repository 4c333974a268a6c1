-- Which important criteria does no model meet in its current vintage?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

-- Fields and topics are joined to few criteria, not to all their verdicts.
never_met as (
    select benchmark, dataset_revision, task_id, criterion_id, weight, judge, title,
        list(distinct vintage order by vintage) as vintages,
        count(distinct model) as n_models,
        count(value) as n_responses
    from verdict_details
    natural join judge
    where is_latest and weight >= 4
    group by all
    having max(value) = 0
)

select field, topic, task_id, weight, judge, vintages, n_models, n_responses, title
from never_met
inner join tasks using (benchmark, dataset_revision, task_id)
order by weight desc, field, task_id, criterion_id
