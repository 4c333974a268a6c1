-- How many criteria people agree with, over all and by label.
select
    breakdown,
    if(breakdown = 'all', 'all criteria', label) as label,
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
    population_id,
    array_position(['all', 'category', 'severity'], breakdown),
    agreeing_share,
    label
