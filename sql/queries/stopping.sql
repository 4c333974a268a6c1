-- name: earlier_values
-- One row: a task, and a model's score in the latest night before a given one, or
-- in its base vintage. Nights in which the judge was out of control are skipped.
--
-- with: revision/revision_responses, queries/run/judge_config, queries/stopping/judged_scores
with earlier as (
    select vintage, min(created_at) as first_response_at
    from revision_responses
    where model = $model
        and model_config_hash = $model_config_hash
        and (
            vintage in ('base', $night)
            or vintage in (select night from runs where night is not null)
        )
    group by vintage
    qualify
        first_response_at < coalesce(
            min(first_response_at) filter (vintage = $night) over (), 'infinity'::timestamptz
        )
)

select task_id, arg_max(value, first_response_at) as value
from judged_scores
inner join earlier using (vintage)
anti join (select *, night as vintage from judge_drift where is_out_of_control) as out_of_control
    using (
        benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading, vintage
    )
where model = $model and model_config_hash = $model_config_hash
group by task_id;

-- name: judged_scores
-- One row: a task's score in a sampling of a model under a judge configuration.
--
-- with: queries/run/judge_config
from task_scores
natural semi join judge_config
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and score_name = $score
    and mean_score is not null;

-- name: figures
-- One row: a figure (split, judge configuration and score) of a vintage of a configured model, or
-- of its imported responses, with its score on each evaluated task, and the numbers of evaluated
-- and skipped tasks of its split. A figure that includes another task is left out, because it is
-- not of the random part alone.
with wanted_members as (
    select split, task_id,
        list_contains($evaluated, task_id) as is_evaluated,
        list_contains($skipped, task_id) as is_skipped
    from split_members
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and list_contains($tasks, task_id)
),

split_sizes as (
    select split,
        count(*) filter (is_evaluated) as n_tasks_evaluated,
        count(*) filter (is_skipped) as n_tasks_skipped
    from wanted_members
    group by split
)

select split, scores.model, scores.model_config_hash, scores.vintage, scores.judge,
    scores.judge_config_hash, scores.template_hash, scores.grading, scores.judge_trial,
    scores.score_name, split_sizes.n_tasks_evaluated, split_sizes.n_tasks_skipped,
    map_from_entries(list((scores.task_id, scores.mean_score))) as task_scores
from task_scores as scores
inner join wanted_members using (task_id)
inner join split_sizes using (split)
where scores.benchmark = $benchmark
    and scores.dataset_revision = $dataset_revision
    and scores.model = $model
    and scores.model_config_hash in ($model_config_hash, 'imported')
    and scores.vintage = $vintage
    and scores.mean_score is not null
group by all
having bool_and(wanted_members.is_evaluated)
order by all;

-- name: values
-- One row: a task's score in a vintage of a model under a judge configuration; an imported
-- response counts where the model's own has none.
--
-- with: queries/run/judge_config, queries/stopping/judged_scores
select model, vintage, task_id, arg_min(value, model_config_hash = 'imported') as value
from judged_scores
where list_contains($sides, vintage || ' ' || model_config_hash || ' ' || model)
    or list_contains($sides, vintage || ' imported ' || model)
group by model, vintage, task_id;
