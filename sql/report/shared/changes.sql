-- One row: a latest sampling beside the earlier one that it is compared with.
select *
from $changes as given (
    model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
    earlier, later, split, ci_low, ci_high, p_adjusted
)
