-- One row: a control set in one night, compared with the first verdicts and with
-- people's labels of the same members. Failed and lost members are no
-- disagreement.
--
-- If all labelled members have a known probability of being drawn, each counts
-- as 1 / probability, so that agreement with people is an estimate for all
-- verdicts that the sheets sampled; else it concerns these members only.
--
-- built as: view
-- depends on: control_set, control_verdicts, intermediate.imported_decisions
with labels as (
    select control_set.set_id, control_set.response_id, control_set.criterion_id,
        control_set.criterion_hash, control_set.probability,
        list(decisions.value) as people_values
    from control_set
    inner join intermediate.imported_decisions as decisions
        using (response_id, criterion_id, criterion_hash)
    where decisions.is_label
        and (control_set.grading = 'ternary') = (decisions.steps = 'ternary')
    group by all
),

labelled as (
    select *,
        count(probability) over (partition by set_id) = count(*) over (partition by set_id)
            as is_sample,
        if(is_sample, 1 / probability, 1) as factor
    from labels
),

members as (
    select control_set.set_id, control_set.first_value, verdicts.judge_vintage as night,
        verdicts.status, verdicts.value, labelled.is_sample,
        case when verdicts.value is not null then labelled.factor end as factor,
        len(list_filter(people_values, lambda label: label = verdicts.value))
        / len(people_values) as people_share,
        len(list_filter(people_values, lambda label: label = control_set.first_value))
        / len(people_values) as first_people_share
    from control_set
    inner join control_verdicts as verdicts
        using (set_id, response_id, criterion_id, criterion_hash)
    left join labelled using (set_id, response_id, criterion_id, criterion_hash)
),

counted as (
    select set_id,
        night,
        count(value) as n_decided,
        count(*) filter (value is null and status <> 'lost') as n_failed,
        count(*) filter (status = 'lost') as n_lost,
        count(*) filter (value = first_value) as n_agreeing,
        avg(value) as met_share,
        avg(first_value) filter (value is not null) as first_met_share,
        count(factor) as n_labelled,
        exact_sum(factor * people_share) / exact_sum(factor) as people_agreement,
        exact_sum(factor * first_people_share) / exact_sum(factor) as first_people_agreement,
        bool_and(is_sample) filter (factor is not null) as is_sample,
        -- Number of equal pairs, if every first decision were paired with every
        -- new one.
        count(value) filter (first_value = 1) * count(*) filter (value = 1)
        + count(value) filter (first_value = 0.5) * count(*) filter (value = 0.5)
        + count(value) filter (first_value = 0) * count(*) filter (value = 0) as n_alike_by_chance
    from members
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
