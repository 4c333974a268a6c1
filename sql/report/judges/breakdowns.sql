-- How far each two graders agree under one label: of a criterion, its task, the
-- model that answered, or the answer.
with pairs as (
    select benchmark, dataset_revision, grader_a, grader_b,
        row_number() over (
            order by 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b
        ) as place
    from judge_agreement
    where benchmark = $benchmark and dataset_revision = $revision and not is_member
)

select place, grader_a, grader_b, breakdown,
    replace(label, ' letters and digits', '') as label,
    kappa, kappa_ci_low, kappa_ci_high, macro_f1, macro_f1_ci_low, macro_f1_ci_high, agreement,
    agreement_ci_low, agreement_ci_high, met_share_a, met_share_b, n, n_tasks,
    n < 50 as is_few
from breakdown_agreement
inner join pairs using (benchmark, dataset_revision, grader_a, grader_b)
order by place, breakdown, label
