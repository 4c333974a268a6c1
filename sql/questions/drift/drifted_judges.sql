-- One row: a control set on which its judge is out of control in a night.
select
    judge,
    night,
    n_decided,
    agreement,
    centre,
    lower_limit,
    min_agreement,
    met_share,
    first_met_share,
    cause
from judge_drift
where
    is_out_of_control
    and night = $night
    and list_contains($sets::varchar[], set_id)
order by judge
