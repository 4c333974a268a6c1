-- built as: view
-- depends on: intermediate.control_nights, control_limits, control_set
with sets as (
    select set_id, benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial,
        count(*) as n_members
    from control_set
    group by all
)

select sets.*,
    nights.* exclude (set_id),
    expected.min_agreement, expected.method, expected.centre, expected.lower_limit, expected.cause,
    expected.cause is not null as is_out_of_control
from sets
inner join intermediate.control_nights as nights using (set_id)
left join control_limits as expected
    on nights.set_id = expected.set_id
        and nights.night = expected.night
        -- Limits are valid only for the counts that they were computed from.
        and nights.n_decided = expected.n_decided
        and nights.n_agreeing = expected.n_agreeing
