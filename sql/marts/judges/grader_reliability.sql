-- built as: view
-- depends on: intermediate.measured, intermediate.reliability_counts,
--     intermediate.voting_figures
with counted as (
    select benchmark, dataset_revision, grader_set, breakdown, label,
        max(n_graders) as n_graders,
        sum(n)::bigint as n,
        count(distinct task_id) as n_tasks,
        sum(n_unanimous) / sum(n) as unanimous_share,
        md5(
            concat_ws(chr(31), benchmark, dataset_revision, grader_set, breakdown, label)
        ) as figure_id,
        bit_xor(
            hash(
                task_id,
                n,
                -- Sums of thirds and the like, which depend on their order in
                -- the last digits.
                round(unmet_unmet, 6),
                round(unmet_partial, 6),
                round(unmet_met, 6),
                round(partial_partial, 6),
                round(partial_met, 6),
                round(met_met, 6)
            )
        )::varchar as basis
    from intermediate.reliability_counts
    group by all
)

select counted.*, measured.alpha, measured.alpha_ci_low, measured.alpha_ci_high, voting.n_voters,
    votes.effective_votes, votes.effective_votes_ci_low, votes.effective_votes_ci_high,
    votes.effective_votes_is_small, votes.effective_votes_note
from counted
left join intermediate.measured using (figure_id, basis)
left join intermediate.voting_figures as voting
    on counted.benchmark = voting.benchmark
        and counted.dataset_revision = voting.dataset_revision
        and counted.grader_set = voting.grader_set
        and counted.breakdown = 'all'
left join intermediate.measured as votes
    on voting.figure_id = votes.figure_id and voting.basis = votes.basis
