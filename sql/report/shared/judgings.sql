-- One row: a judging that is shown, under its label.
select *
from $judgings as given (judge, judge_config_hash, template_hash, grading, judge_trial, judging)
