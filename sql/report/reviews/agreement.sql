-- The share of criteria that people agree with, estimated for all criteria that
-- a sample was drawn from, beside the share that the benchmark's paper gives.
with own as (
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
    where benchmark = $benchmark and dataset_revision = $revision
),

paper as (
    select distinct
        'All criteria' as breakdown,
        'the benchmark''s paper' as label,
        $reviewed_share::double as agreeing_share,
        false as is_small,
        population_id
    from own
    where $reviewed_share::double is not null
),

final as (
    select * from own
    union all by name
    select * from paper
)

select *
from final
order by max(n_population) over (partition by population_id) desc, population_id,
    array_position(['All criteria', 'Category', 'Severity'], breakdown), n_criteria is null,
    agreeing_share, label
