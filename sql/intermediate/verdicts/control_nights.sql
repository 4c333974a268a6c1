-- One row: a control set in one night, compared with the first verdicts and with
-- people's labels of the same members. Failed and lost members are no disagreement.
--
-- If all labelled members have a known probability of being drawn, each counts
-- as 1 / probability, so that agreement with people is an estimate for all
-- verdicts that the sheets sampled; else it concerns these members only.
--
-- built as: view
-- depends on: control_set, control_verdicts, intermediate.imported_decisions
with labels as (
    select set_id, response_id, criterion_id, criterion_hash,
        any_value(1 / probability) as n_represented,
        avg(value) as label
    from control_set
    inner join intermediate.imported_decisions using (response_id, criterion_id, criterion_hash)
    where is_label and (steps = 'ternary') = (grading = 'ternary')
    group by all
),

weighted as (
    select *,
        bool_and(n_represented is not null) over (partition by set_id) as is_sample,
        case when is_sample then n_represented else 1 end as factor
    from labels
),

counted as (
    select set_id,
        judge_vintage as night,
        count(value) as n_decided,
        count(*) filter (value is null and status <> 'lost') as n_failed,
        count(*) filter (status = 'lost') as n_lost,
        count(*) filter (value = first_value) as n_agreeing,
        avg(value) as met_share,
        avg(first_value) filter (value is not null) as first_met_share,
        count(label) filter (value is not null) as n_labelled,
        bool_and(is_sample) as is_sample,
        exact_sum(case when value is not null then factor end) as n_in_sum,
        1 - exact_sum(factor * abs(label - value)) / n_in_sum as people_agreement,
        1
        - exact_sum(case when value is not null then factor * abs(label - first_value) end)
        / n_in_sum as first_people_agreement,
        -- Number of equal pairs, if every first decision were paired with every
        -- new one.
        count(value) filter (first_value = 1) * count(*) filter (value = 1)
        + count(value) filter (first_value = 0.5) * count(*) filter (value = 0.5)
        + count(value) filter (first_value = 0) * count(*) filter (value = 0) as n_alike_by_chance
    from control_set
    inner join control_verdicts using (set_id, response_id, criterion_id, criterion_hash)
    left join weighted using (set_id, response_id, criterion_id, criterion_hash)
    group by all
)

select
    set_id,
    night,
    n_decided,
    n_failed,
    n_lost,
    n_agreeing,
    met_share,
    first_met_share,
    n_labelled,
    people_agreement,
    first_people_agreement,
    case is_sample when true then 'sampled verdicts' when false then 'these items only' end
        as labels_represent,
    n_agreeing / nullif(n_decided, 0) as agreement,
    (n_decided * n_agreeing - n_alike_by_chance)
    / nullif(n_decided * n_decided - n_alike_by_chance, 0) as kappa
from counted
