-- One row: a check by a reviewer and a kind of disagreement, with a fingerprint
-- of the values that its measures are computed from.
--
-- built as: view
-- depends on: intermediate.check_outcomes
select
    benchmark,
    dataset_revision,
    source,
    reviewer,
    review_check,
    outcome,
    sum(n_criteria)::bigint as n_criteria,
    round(exact_sum(n_failing), 9) as n_failing,
    count(*) as n_tasks,
    count(*) filter (n_failing > 0) as n_tasks_failing,
    figure_key([
        'predictions', benchmark, dataset_revision, source, reviewer, review_check, outcome
    ]) as figure_id,
    bit_xor(hash(task_id, fail_disagree, fail_agree, pass_disagree, pass_agree))::varchar as basis
from intermediate.check_outcomes
group by all
