-- A judging: a judge with its parameters, template, grading and judge trial.
select
    hash(judge, judge_config_hash, template_hash, grading, judge_trial)
        as judging_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    bool_and(source = 'imported') as is_imported
from verdicts
group by judge, judge_config_hash, template_hash, grading, judge_trial
