-- One row: a model on a split, under a judge with all of its trials or, without a judge,
-- under all judges of a grading, with a fingerprint of the scores.
--
-- built as: view
-- depends on: intermediate.judge_trial_scores
select
    benchmark,
    dataset_revision,
    split,
    score_name,
    model,
    model_config_hash,
    vintage,
    grading,
    judge,
    judge_config_hash,
    template_hash,
    judge_key,
    count(distinct judge_key) as n_judges,
    count(distinct task) as n_tasks,
    count(distinct (task, trial)) as n_responses,
    count(*) as n_scores,
    figure_key([
        'uncertainty', benchmark, dataset_revision, split, score_name, model, model_config_hash,
        vintage, grading, judge, judge_config_hash, template_hash
    ]) as figure_id,
    bit_xor(hash(judge_key, judge_trial, task, trial, value))::varchar as basis
from intermediate.judge_trial_scores
group by
    grouping sets (
        (
            benchmark, dataset_revision, split, score_name, model, model_config_hash, vintage,
            grading, judge, judge_config_hash, template_hash, judge_key
        ),
        (
            benchmark, dataset_revision, split, score_name, model, model_config_hash, vintage,
            grading
        )
    )
having n_tasks > 1 and (judge is not null or n_judges > 1)
