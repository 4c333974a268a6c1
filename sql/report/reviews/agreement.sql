-- The share of criteria that people agree with, estimated for all criteria that
-- a sample was drawn from.
select
    case breakdown
        when 'all' then 'All criteria'
        when 'category' then 'Category'
        else 'Severity'
    end as breakdown,
    case breakdown when 'all' then 'all criteria' else label end as label,
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
from review_agreement
where benchmark = $benchmark and dataset_revision = $revision
order by
    n_population desc,
    population_id,
    array_position(['all', 'category', 'severity'], review_agreement.breakdown),
    agreeing_share,
    label
