-- name: review_agreement
-- The share of criteria that people agree with, estimated for the whole
-- population of a sample, and the share in the benchmark's paper.
with estimates as (
    select
        case breakdown
            when 'all' then 'All criteria'
            when 'category' then 'Category'
            else 'Severity'
        end as breakdown,
        case breakdown when 'all' then 'these reviews' else label end as label,
        agreeing_share, ci_low, ci_high, is_small, unweighted_share, n_criteria, n_reviews, n_tasks,
        n_population, population_id
    from review_agreement
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

paper as (
    select distinct
        'All criteria' as breakdown,
        'the benchmark''s paper' as label,
        $reviewed_share::double as agreeing_share,
        false as is_small,
        population_id
    from estimates
    where $reviewed_share is not null
)

select
    breakdown,
    label,
    agreeing_share,
    ci_low,
    ci_high,
    is_small,
    unweighted_share,
    n_criteria,
    n_reviews,
    n_tasks,
    n_population,
    population_id
from (from estimates union all by name from paper)
order by max(n_population) over (partition by population_id) desc, population_id,
    array_position(['All criteria', 'Category', 'Severity'], breakdown),
    -- The paper's row is last; it has no number of criteria.
    n_criteria is null,
    agreeing_share, label;

-- name: review_checks
-- One row: a reviewer and a check, with the share of reviews that the criteria
-- pass, and the number of criteria reviewed.
--
-- with: revision/revision_current_reviews
select
    reviewer,
    case source when 'imported' then 'person' else 'model' end as kind,
    review_check,
    avg(value) as pass_share,
    count(distinct row(task_id, criterion_id)) as n_criteria,
    count(distinct task_id) as n_tasks,
    count(distinct review_trial) as n_trials
from revision_current_reviews
group by all
-- People before models.
order by kind desc, reviewer, pass_share, review_check;

-- name: review_objections
-- One row: a criterion, a reviewer and a check with an objection, with the verdicts
-- on the criterion; criteria with objections of the most people come first, then
-- those with the most objections.
--
-- with: revision/revision_current_reviews
with objections as (
    select task_id, criterion_id, title, category, severity, weight, source, reviewer, review_check,
        -- Those of the first repetition that fails.
        arg_min(explanation, (value, review_trial)) as explanation,
        arg_min(better_wording, (value, review_trial)) as better_wording
    from revision_current_reviews
    group by all
    having min(value) = 0
),

criterion_findings as (
    select task_id, criterion_id,
        concat_ws(
            ', ',
            case when bool_or(met_share = 0) then 'never met' end,
            case when bool_or(met_share = 1) then 'always met' end,
            case when max(disagreement) > 0 then 'graders disagree' end,
            case when bool_or(rest_correlation_high < 0) then 'suspect' end
        ) as findings
    from criterion_statistics
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        -- Not the binary readings of ternary verdicts.
        and grading <> 'ternary_as_binary'
    group by all
),

counted as (
    select *,
        -- A person's review has one check only, so rows are people.
        count(*) filter (source = 'imported') over same as n_people,
        count(*) over same as n_objections
    from objections
    window same as (partition by task_id, criterion_id)
),

ranked as (
    select *,
        dense_rank() over (
            order by n_people desc, n_objections desc, abs(weight) desc, task_id, criterion_id
        ) as row_rank
    from counted
)

select
    task_id,
    criterion_id,
    title,
    category,
    severity,
    weight,
    n_people,
    n_objections,
    reviewer,
    case review_check when 'agree' then 'disagrees' else review_check end as review_check,
    explanation,
    better_wording,
    nullif(findings, '') as findings
from ranked
left join criterion_findings using (task_id, criterion_id)
where $n_criteria is null or row_rank <= $n_criteria
order by row_rank, source, reviewer, ranked.review_check;

-- name: review_failures
-- Reviews that failed, by reviewer and cause. A failed review is one row without a
-- check.
select
    reviewer,
    status,
    count(*) as n
from criterion_reviews
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and review_check is null
group by all
order by reviewer, status;

-- name: reviewer_agreement
-- Agreement of reviewers of the same criteria: of two of them, or of all (then
-- `reviewer_b` is NULL).
select
    review_check,
    reviewer_a,
    reviewer_b,
    n,
    n_tasks,
    agreement,
    agreement_ci_low,
    agreement_ci_high,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    alpha,
    alpha_ci_low,
    alpha_ci_high,
    pass_share_a,
    pass_share_b
from reviewer_agreement
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by review_check <> 'agree', review_check, reviewer_b is not null, reviewer_a, reviewer_b;

-- name: review_predictions
-- How often graders or people disagree on criteria that fail a check.
select
    source,
    reviewer,
    review_check,
    outcome,
    n_criteria,
    n_failing,
    n_tasks,
    n_tasks_failing,
    failing_rate,
    passing_rate,
    difference,
    difference_ci_low,
    difference_ci_high,
    odds_ratio,
    odds_ratio_ci_low,
    odds_ratio_ci_high,
    auc,
    auc_ci_low,
    auc_ci_high,
    is_small
from review_predictions
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by outcome, reviewer, auc desc nulls last, review_check;
