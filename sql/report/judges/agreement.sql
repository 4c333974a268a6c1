-- How far each two graders agree on the criteria that both decided, of all
-- samplings.
select grader_a, grader_b, kind_a, kind_b, is_member, macro_f1, macro_f1_ci_low, macro_f1_ci_high,
    kappa, kappa_ci_low, kappa_ci_high, agreement, agreement_ci_low, agreement_ci_high, met_share_a,
    met_share_b, n, n_tasks
from judge_agreement
where benchmark = $benchmark and dataset_revision = $revision
-- People first, and last the majorities beside their own voters, who agree with
-- them by making.
order by is_member, 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b
