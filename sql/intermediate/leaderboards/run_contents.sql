-- One row: a model run with a hash of everything that its points, the scores of its
-- tasks, and their means are computed from.
--
-- depends on: intermediate.all_scores, intermediate.breakdown_sizes, intermediate.judge_configs,
--     intermediate.model_runs, intermediate.task_breakdowns, intermediate.task_set_members,
--     intermediate.wanted_responses, temp.judged_trials, temp.labelled_criteria
with revision_rows as (
    select benchmark, dataset_revision, hash(labelled_criteria) as content
    from temp.labelled_criteria
    union all
    select benchmark, dataset_revision, hash(task_set_members) as content
    from intermediate.task_set_members
    union all
    select benchmark, dataset_revision, hash(task_breakdowns) as content
    from intermediate.task_breakdowns
    union all
    select benchmark, dataset_revision, hash(breakdown_sizes) as content
    from intermediate.breakdown_sizes
),

revisions as (
    select benchmark, dataset_revision,
        sum(content) as tasks
    from revision_rows
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
    hash(counted_trials, has_probabilities, tasks, scores, responses, verdicts) as content
from intermediate.model_runs
inner join intermediate.judge_configs using (judging_id)
inner join run_verdicts using (model_run_id)
left join run_responses using (model_run_id)
left join revisions using (benchmark, dataset_revision)
left join definitions using (benchmark)
