-- name: scores
-- One row: a model's mean of a score on the hard-selected tasks of a split, with
-- the values of the tasks that have a complete trial, the best first.
--
-- with: queries/hard_subset/unchanged_runs, queries/hard_subset/task_set_members,
--     queries/hard_subset/selected_values, intermediate/scores/breakdown_sizes,
--     intermediate/scores/mean_scores, intermediate/leaderboards/current_vintages
select mean_scores.*,
    coalesce(selected_values.task_values, []) as task_values
from intermediate.mean_scores
inner join (select task_set_id, model_run_id, is_latest from intermediate.current_vintages)
    using (task_set_id, model_run_id)
left join selected_values using (split, model_run_id)
where breakdown = 'all'
    and score_name = $score
    and is_among($splits, split)
    and is_among($models, model)
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
    and (
        $vintage = 'all'
        or vintage = $vintage
        or ($vintage is null and is_latest)
    )
order by split, judge, judge_config_hash, template_hash, judge_trial, grading, vintage,
    raw_mean_score desc nulls last, model;

-- name: selected_values
-- The values of the tasks of hard selections in each model run, those with a
-- complete trial.
select split_members.split, task_values.model_run_id,
    list(task_values.value order by task_values.task_id) as task_values
from split_members
inner join intermediate.task_values using (benchmark, dataset_revision, task_id)
semi join (from hard_subset where list_contains($selections, selection_id)) as selected
    using (benchmark, dataset_revision, task_id)
where breakdown = 'all' and score_name = $score and value is not null
group by all;

-- name: selecting_scores
-- One row: a task's score for a model under the judge configuration that selects hard
-- tasks, with its complete trials; of a label with several configurations, the
-- one that was sampled last.
with latest as (
    select model, arg_max(model_run_id, last_response_at) as model_run_id
    from intermediate.model_runs
    where ranking_id = $ranking
    group by model
)

select model, task_id, value, complete_trials, trial_values
from intermediate.task_values
inner join latest using (model_run_id)
where breakdown = 'all' and score_name = $score and value is not null;

-- name: task_set_members
-- One row: an admitted, hard-selected task of a split; the task sets are the splits.
select distinct
    hash(split_members.split) as task_set_id,
    benchmark, dataset_revision, split_members.split,
    true as is_own_hard,
    task_id, tasks.n_criteria
from hard_subset
inner join split_members using (benchmark, dataset_revision, task_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where list_contains($selections, hard_subset.selection_id) and tasks.is_admitted;

-- name: unchanged_runs
-- No row: the means on other task sets are computed for every model run.
select 0::ubigint as model_run_id
where false;
