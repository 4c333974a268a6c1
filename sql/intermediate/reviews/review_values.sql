-- One row: a task's contribution to a share of agreement: the weights of its
-- reviewed criteria, and of those that people agree with.
--
-- A criterion has the share of its reviewers who agree. Its weight is
-- 1 / probability of being sampled (Horvitz and Thompson 1952). Samples of one
-- population are pooled, weighted by the number of their reviewed criteria, so
-- all criteria of simple random samples have equal weights.
--
-- built as: table
-- depends on: intermediate.current_reviews, review_samples
with reviewed as (
    select benchmark, dataset_revision, task_id, criterion_id,
        coalesce(category, '(none)') as category,
        coalesce(severity, '(none)') as severity,
        avg(value) as agreeing,
        count(*) as n_reviews
    from intermediate.current_reviews
    where review_check = 'agree'
    group by all
),

sampled as (
    select reviewed.*, population_id, n_population,
        count(*) over (partition by sample_id) / probability as sample_weight
    from review_samples
    inner join reviewed using (benchmark, dataset_revision, task_id, criterion_id)
),

weighted as (
    select * exclude (sample_weight), exact_sum(sample_weight) as sample_weight
    from sampled
    group by all
)

select
    benchmark,
    dataset_revision,
    population_id,
    case
        when grouping(category) = 0 then 'category'
        when grouping(severity) = 0 then 'severity'
        else 'all'
    end as breakdown,
    coalesce(category, severity, '') as label,
    task_id,
    any_value(n_population) as n_population,
    exact_sum(sample_weight * agreeing) as weight_agreed,
    exact_sum(sample_weight) as sample_weights,
    exact_sum(agreeing) as n_agreed,
    count(*) as n_criteria,
    sum(n_reviews)::bigint as n_reviews
from weighted
group by benchmark, dataset_revision, population_id, task_id,
    grouping sets ((), (category), (severity))
