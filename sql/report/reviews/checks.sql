-- How many criteria pass each check of each reviewer.
select reviewer,
    case source when 'imported' then 'person' else 'model' end as kind,
    review_check,
    avg(value) as pass_share,
    count(distinct (task_id, criterion_id)) as n_criteria,
    count(distinct task_id) as n_tasks,
    count(distinct review_trial) as n_trials
from staging.current_reviews
where benchmark = $benchmark and dataset_revision = $revision
group by all
order by kind desc, reviewer, pass_share, review_check
