-- How much more often a grader says "met" than the others, on the same criteria.
--
-- built as: table
-- needs: temp.graded
-- depends on: temp.graded, graders
with beside_others as (
    select graded.*, grader, kind,
        sum(value) over same - value as others_sum,
        count(*) over same - 1 as n_others
    from temp.graded
    inner join graders using (grader_id, benchmark)
    where has_voice
    window same as (partition by response_id, criterion_id)
)

select
    benchmark,
    dataset_revision,
    grader,
    kind,
    count(*) as n,
    avg(value) as met_share,
    exact_avg(others_sum / n_others) as others_met_share,
    exact_avg(value - others_sum / n_others) as leniency
from beside_others
where n_others > 0
group by all
