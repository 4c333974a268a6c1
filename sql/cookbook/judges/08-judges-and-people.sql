-- How far do judges agree with people, taking imported graders for people
-- (table 3 of the paper)?
-- A pair counts by its decisions; `prbench judges --people` pools the decisions
-- themselves and gives intervals.
select
    case
        when kind_a = 'judge' then grader_a
        when kind_b = 'judge' then grader_b
        else '(people with each other)'
    end as judge,
    round(sum(n * kappa) / sum(n) filter (kappa is not null), 3) as kappa,
    round(sum(n * macro_f1) / sum(n) filter (macro_f1 is not null), 3) as macro_f1,
    count(*) as pairs,
    sum(n) as decisions
from judge_agreement
where 'imported' in (kind_a, kind_b) and 'majority' not in (kind_a, kind_b)
group by judge
order by kappa desc nulls last
