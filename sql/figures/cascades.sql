-- name: cascade_decisions
-- One row: a judge, a reason to call the second judge of its cascade (or `decided
-- at once`, by the first judge), and the one that decided, with the number of such
-- verdicts and their share in all verdicts of the judge. A verdict with several
-- reasons counts under each, so shares may add up to more than 1.
--
-- with: revision/revision_verdicts
with decisions as (
    select *,
        count(*) over (partition by judge) as n_verdicts,
        coalesce(escalated_because, ['decided at once']) as reasons
    from revision_verdicts
    where decided_by is not null
)

select
    judge,
    reason,
    decided_by,
    count(*) as n,
    count(*) / any_value(n_verdicts) as share,
    count(*) - count(value) as n_failed,
    case when count(*) = count(cost_usd) then round(exact_sum(cost_usd), 12) end as cost_usd
from (select *, unnest(reasons) as reason from decisions)
group by all
order by judge, n desc, reason, decided_by;

-- name: cascade_rules
-- The rules of the latest evaluation of each pair of judges on the same splits,
-- cheapest first, with their figures on the held-out tasks.
select
    cheap_judge || ', then ' || strong_judge
    || case
        when len(evaluated_splits) = 0 then ''
        else ' (' || list_aggregate(evaluated_splits, 'string_agg', ', ') || ')'
    end as cascade,
    cheap_judge,
    strong_judge,
    position,
    rule,
    is_on_front,
    is_picked,
    n_paired,
    n_tasks,
    escalated_share,
    escalated_share_ci_low,
    escalated_share_ci_high,
    strong_calls,
    cheap_calls,
    thousand_usd,
    thousand_usd_ci_low,
    thousand_usd_ci_high,
    agreement,
    agreement_ci_low,
    agreement_ci_high,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    ranking_tau,
    ranking_tau_ci_low,
    ranking_tau_ci_high,
    score_change,
    score_change_ci_low,
    score_change_ci_high,
    changed_model,
    n_ranked_responses,
    is_small
from cascade_rules
where benchmark = $benchmark and dataset_revision = $dataset_revision
qualify evaluation_id = arg_max(evaluation_id, created_at) over (
    partition by cheap_judge, strong_judge, evaluated_splits
)
order by cascade, position;
