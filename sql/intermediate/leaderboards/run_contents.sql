-- One row: a model run with a hash of everything that its points and the scores of its
-- tasks are computed from.
--
-- depends on: intermediate.all_scores, intermediate.judge_configs, intermediate.model_runs,
--     intermediate.wanted_responses, temp.judged_trials, temp.labelled_criteria
with rubrics as (
    select benchmark, dataset_revision,
        sum(hash(labelled_criteria)) as labels
    from temp.labelled_criteria
    group by all
),

definitions as (
    select benchmark,
        sum(hash(all_scores)) as scores
    from intermediate.all_scores
    group by benchmark
),

run_responses as (
    select model_run_id,
        sum(hash(response_id, task_id, trial)) as responses
    from intermediate.wanted_responses
    group by model_run_id
),

run_verdicts as (
    select model_run_id,
        sum(content) as verdicts
    from temp.judged_trials
    group by model_run_id
)

select
    model_run_id,
    hash(counted_trials, has_probabilities, labels, scores, responses, verdicts) as content
from intermediate.model_runs
inner join intermediate.judge_configs using (judging_id)
inner join run_verdicts using (model_run_id)
left join run_responses using (model_run_id)
left join rubrics using (benchmark, dataset_revision)
left join definitions using (benchmark)
