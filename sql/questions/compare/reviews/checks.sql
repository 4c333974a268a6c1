-- How many criteria pass each check of each reviewer.
select
    if(source = 'imported', 'person', 'model') as kind,
    reviewer,
    review_check,
    count(distinct (task_id, criterion_id)) as n_criteria,
    count(distinct task_id) as n_tasks,
    count(distinct review_trial) as n_trials,
    avg(value) as pass_share
from staging.current_reviews
where benchmark = $benchmark and dataset_revision = $revision
group by all
order by kind desc, reviewer, pass_share, review_check
