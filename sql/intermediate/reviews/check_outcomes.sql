-- One row: a check of criteria and a kind of disagreement in a task, as sums over
-- its criteria.
--
-- Disagreement is that of graders on a criterion (the share of different pairs),
-- or that of reviewing people (the share who disagree with it). A reviewer's
-- repetitions are one check, which fails in a share of them; `all checks` fails
-- if one of a model's checks fails. All people together are one reviewer.
--
-- built as: table
-- needs: criterion_reviews
-- depends on: intermediate.current_reviews, intermediate.disagreements
with checked as (
    select benchmark, dataset_revision, task_id, criterion_id, source,
        if(source = 'imported', 'people', reviewer) as reviewer,
        repeated, review_check, value
    from intermediate.current_reviews
    union all
    select benchmark, dataset_revision, task_id, criterion_id, source, reviewer, repeated,
        'all checks' as review_check,
        min(value) as value
    from intermediate.current_reviews
    where source = 'reviewed'
    group by all
),

check_findings as (
    select * exclude (repeated, value), 1 - avg(value) as failing
    from checked
    group by all
),

outcomes as (
    select benchmark, dataset_revision, task_id, criterion_id,
        'graders' as outcome,
        disagreement as disagreeing
    from intermediate.disagreements
    union all
    select benchmark, dataset_revision, task_id, criterion_id,
        'people' as outcome,
        1 - avg(value) as disagreeing
    from intermediate.current_reviews
    where review_check = 'agree'
    group by all
)

select
    benchmark,
    dataset_revision,
    source,
    reviewer,
    review_check,
    outcome,
    task_id,
    count(*) as n_criteria,
    exact_sum(failing) as n_failing,
    exact_sum(failing * disagreeing) as fail_disagree,
    exact_sum(failing * (1 - disagreeing)) as fail_agree,
    exact_sum((1 - failing) * disagreeing) as pass_disagree,
    exact_sum((1 - failing) * (1 - disagreeing)) as pass_agree
from check_findings
inner join outcomes using (benchmark, dataset_revision, task_id, criterion_id)
-- People's own disagreement is not used to predict itself.
where not (source = 'imported' and outcome = 'people')
group by all
