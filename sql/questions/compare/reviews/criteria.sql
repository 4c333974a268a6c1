-- Criteria that people disagree with or that fail a check, those with the most
-- objections first, with the reasons.
with objections as (
    select
        task_id,
        criterion_id,
        title,
        category,
        severity,
        weight,
        -- A repetition that says so too is no further objection.
        reviewer,
        review_check,
        source,
        arg_min(explanation, (value, review_trial)) as reason,
        arg_min(better_wording, (value, review_trial)) as better_wording
    from staging.current_reviews
    where benchmark = $benchmark and dataset_revision = $revision
    group by all
    having avg(1 - value) > 0
)

select *
from (
    select
        task_id,
        criterion_id,
        category,
        severity,
        weight,
        count(*) filter (source = 'imported') as n_people,
        count(*) filter (source = 'reviewed') as n_checks,
        string_agg(
            reviewer || ' ('
            || if(source = 'imported', 'disagrees', review_check)
            || '): ' || coalesce(reason, ''),
            '; '
            order by source, reviewer, review_check
        ) as reasons,
        string_agg(better_wording, '; ' order by reviewer) as better_wording,
        title
    from objections
    group by all
) as together
order by
    n_people desc,
    n_checks desc,
    abs(weight) desc,
    task_id,
    criterion_id
limit $n_criteria
