-- How far do judges agree with people, taking imported graders for people
-- (table 3 of the paper)?
-- A pair counts by its decisions; `prbench judges --people` pools the decisions
-- themselves and gives intervals.
with sides as (
    select kind_a, kind_b, grader_a as judge, kappa, macro_f1, n
    from judge_agreement
    where kind_a = 'judge' and kind_b = 'imported'
    union all
    select kind_a, kind_b, grader_b as judge, kappa, macro_f1, n
    from judge_agreement
    where kind_b = 'judge' and kind_a = 'imported'
    union all
    select kind_a, kind_b, '(people with each other)' as judge, kappa, macro_f1, n
    from judge_agreement
    where kind_a = 'imported' and kind_b = 'imported'
)

select judge,
    round(sum(n * kappa) / sum(n) filter (kappa is not null), 3) as kappa,
    round(sum(n * macro_f1) / sum(n), 3) as macro_f1,
    count(*) as pairs,
    sum(n) as decisions
from sides
group by judge
order by kappa desc nulls last
