-- One row: a judge configuration: a judge with its parameters, template, grading, rubric
-- and judge trial.
--
-- built as: table
-- depends on: intermediate.graded_verdicts
select
    judging_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    any_value(rubric) as rubric,
    bool_and(source = 'imported') as is_imported,
    -- Every decision has a probability.
    count(value) > 0 and count(value) = count(probability) filter (where value is not null)
        as has_probabilities,
    max(n_in_call) as n_in_call
from intermediate.graded_verdicts
group by all
