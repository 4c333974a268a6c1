-- Which decisions of two graders meet on the same criteria, of all samplings.
with counted as (
    select grader_a, grader_b, kind_a, kind_b, value_a, value_b, sum(n)::bigint as n
    from staging.agreement_counts
    where benchmark = $benchmark
        and dataset_revision = $revision
        and breakdown = 'all'
        and not is_member
    group by all
),

pairs as (
    select grader_a, grader_b,
        'imported' in (kind_a, kind_b) as has_people,
        sum(n)::bigint as n_of_pair
    from counted
    group by all
),

decisions as (
    select distinct grader_a, grader_b, unnest([value_a, value_b]) as value
    from counted
),

-- Decisions that never meet are counted too: 0 times.
cells as (
    select pairs.*, one.value as value_a, other.value as value_b
    from pairs
    inner join decisions as one using (grader_a, grader_b)
    inner join decisions as other using (grader_a, grader_b)
)

select cells.grader_a, cells.grader_b,
    case value_a when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_a,
    case value_b when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_b,
    coalesce(counted.n, 0) as n,
    coalesce(counted.n, 0) / cells.n_of_pair as share
from cells
left join counted using (grader_a, grader_b, value_a, value_b)
order by not has_people, n_of_pair desc, grader_a, grader_b, value_a desc, value_b desc
