-- A row for each criterion and reviewer with an objection in a check, with what
-- verdicts say of the criterion; those with the most objections come first.
with objections as (
    select task_id, criterion_id, title, category, severity, weight, source, reviewer, review_check,
        arg_min(explanation, (value, review_trial)) as explanation,
        arg_min(better_wording, (value, review_trial)) as better_wording
    from staging.current_reviews
    where benchmark = $benchmark and dataset_revision = $revision
    group by all
    having min(value) = 0
),

found as (
    select task_id, criterion_id,
        concat_ws(
            ', ',
            case when bool_or(met_share = 0) then 'never met' end,
            case when bool_or(met_share = 1) then 'always met' end,
            case when max(disagreement) > 0 then 'graders disagree' end,
            case when bool_or(rest_correlation_high < 0) then 'suspect' end
        ) as findings
    from criterion_statistics
    where benchmark = $benchmark and dataset_revision = $revision and grading <> 'ternary_as_binary'
    group by all
),

counted as (
    select *,
        count(*) filter (source = 'imported') over same as n_people,
        count(*) over same as n_objections
    from objections
    window same as (partition by task_id, criterion_id)
)

select task_id, criterion_id, title, category, severity, reviewer,
    case review_check when 'agree' then 'disagrees' else review_check end as review_check,
    explanation, better_wording,
    nullif(findings, '') as findings
from counted
left join found using (task_id, criterion_id)
order by n_people desc, n_objections desc, abs(weight) desc, task_id, criterion_id, source,
    reviewer, counted.review_check
