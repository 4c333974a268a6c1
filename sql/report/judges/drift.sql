-- How each judge decides on its control set night by night, beside its first
-- verdicts and what was to be expected.
-- begins with: judgings
select
    coalesce(judgings.judging, drift.judge)
    || if(
        count(distinct set_id) over (partition by coalesce(judgings.judging, drift.judge)) > 1,
        ' set ' || set_id[:8],
        ''
    ) as grader,
    night, agreement, centre, lower_limit, min_agreement, is_out_of_control, cause, kappa,
    met_share, first_met_share,
    met_share - first_met_share as met_change,
    n_members, n_decided, n_failed, n_lost
from judge_drift as drift
left join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision
order by grader, night
