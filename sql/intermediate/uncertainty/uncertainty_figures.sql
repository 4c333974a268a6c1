-- One row: a model on a split under a judge with all of its trials or, without a judge, under all
-- judges of a grading; with a fingerprint of the scores. `first_score_id` is the mean under the
-- first trial of a judge.
--
-- A view is stored as written, and the oldest client has no function `if`.
--
-- built as: view
-- depends on: intermediate.judge_trial_scores
select
    sampling_key,
    judge_key,
    arg_min(score_id, (judge_trial, score_id)) as first_score_id,
    count(distinct judge_key) as n_judges,
    count(distinct task) as n_tasks,
    count(distinct hash(task, trial)) as n_responses,
    count(*) as n_scores,
    md5(case when judge_key is null then 'judges' else 'sources' end || first_score_id)
        as figure_id,
    bit_xor(hash(score_id, task, trial, value))::varchar as basis
from intermediate.judge_trial_scores
group by grouping sets ((sampling_key, judge_key), (sampling_key))
having n_tasks > 1 and (judge_key is not null or n_judges > 1)
