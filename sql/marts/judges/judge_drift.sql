-- built as: view
-- depends on: intermediate.control_nights, control_limits, control_set
with sets as (
    select set_id, benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial,
        count(*) as n_members
    from control_set
    group by all
)

select
    set_id,
    sets.benchmark,
    sets.dataset_revision,
    sets.judge,
    sets.judge_config_hash,
    sets.template_hash,
    sets.grading,
    sets.judge_trial,
    sets.n_members,
    night,
    n_decided,
    control_nights.n_failed,
    control_nights.n_lost,
    n_agreeing,
    control_nights.met_share,
    control_nights.first_met_share,
    control_nights.agreement,
    control_nights.kappa,
    control_nights.n_labelled,
    control_nights.people_agreement,
    control_nights.first_people_agreement,
    control_nights.labels_represent,
    control_limits.min_agreement,
    control_limits.method,
    control_limits.centre,
    control_limits.lower_limit,
    control_limits.joint_limit,
    control_limits.cause,
    cause is not null as is_out_of_control
from sets
inner join intermediate.control_nights using (set_id)
-- Limits are valid only for the counts that they were computed from.
left join control_limits using (set_id, night, n_decided, n_agreeing)
