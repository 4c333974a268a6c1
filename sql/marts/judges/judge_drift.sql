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
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    n_members,
    night,
    n_decided,
    n_failed,
    n_lost,
    n_agreeing,
    met_share,
    first_met_share,
    agreement,
    kappa,
    min_agreement,
    method,
    centre,
    lower_limit,
    cause,
    cause is not null as is_out_of_control
from sets
inner join intermediate.control_nights using (set_id)
-- Limits are valid only for the counts that they were computed from.
left join control_limits using (set_id, night, n_decided, n_agreeing)
