-- built as: view
-- depends on: intermediate.measured, intermediate.reliability_counts,
--     intermediate.voting_figures
with counted as (
    select benchmark, dataset_revision, grader_set, breakdown, label,
        max(n_graders) as n_graders,
        sum(n)::bigint as n,
        count(distinct task_id) as n_tasks,
        sum(n_unanimous) / sum(n) as unanimous_share,
        figure_key([benchmark, dataset_revision, grader_set, breakdown, label]) as figure_id,
        bit_xor(hash(
            task_id, n,
            -- The last digits of sums of fractions such as thirds depend on
            -- their order.
            round(unmet_unmet, 6),
            round(unmet_partial, 6),
            round(unmet_met, 6),
            round(partial_partial, 6),
            round(partial_met, 6),
            round(met_met, 6)
        ))::varchar as basis
    from intermediate.reliability_counts
    group by all
),

voting as (
    select voting_figures.*,
        'all' as breakdown,
        measured.effective_votes, measured.effective_votes_ci_low, measured.effective_votes_ci_high,
        measured.effective_votes_is_small, measured.effective_votes_note
    from intermediate.voting_figures
    left join intermediate.measured using (figure_id, basis)
)

select
    benchmark,
    dataset_revision,
    grader_set,
    breakdown,
    label,
    n_graders,
    n,
    n_tasks,
    unanimous_share,
    figure_id,
    basis,
    measured.alpha,
    measured.alpha_ci_low,
    measured.alpha_ci_high,
    n_voters,
    voting.effective_votes,
    voting.effective_votes_ci_low,
    voting.effective_votes_ci_high,
    voting.effective_votes_is_small,
    voting.effective_votes_note
from counted
left join intermediate.measured using (figure_id, basis)
left join voting using (benchmark, dataset_revision, grader_set, breakdown)
