-- Judges that were out of control in their last night.
select judge, night, agreement, lower_limit
from judge_drift
where benchmark = $benchmark and dataset_revision = $revision
qualify night = max(night) over (partition by judge) and is_out_of_control
order by judge
