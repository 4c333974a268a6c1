-- Steps that queries of figures and of the report include by name (`-- with:` in their headers).

-- name: change_values
-- One row: the value of a task of a change's split in both vintages.
select
    changes.*,
    task_id,
    any_value(mean_score) filter (vintage = earlier) as earlier_value,
    any_value(mean_score) filter (vintage = later) as later_value
from $changes as changes
inner join task_scores
    using (model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial)
semi join (
    from intermediate.task_set_members where not is_own_hard
) as members using (benchmark, dataset_revision, split, task_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and score_name = $score
group by all
having earlier_value is not null and later_value is not null;

-- name: shown_tasks
-- One row: a task of the report.
--
-- with: revision/revision_split_members
select distinct task_id
from revision_split_members
inner join $shown_splits using (split);

-- name: drilled_tasks
-- One row: a task with a page, and the block of tasks that share its data files.
-- A task's block does not depend on other tasks.
--
-- with: revision/revision_tasks, figures/shared/shown_tasks
select
    task_id,
    (md5_number(task_id) % 64)::integer as block
from revision_tasks
semi join shown_tasks using (task_id)
where is_admitted;

-- name: shown_responses
-- One row: a response of a shown model; `is_older` if it is a response to an
-- earlier conversation of the task.
--
-- Of a materialized step DuckDB does not know the size, and joins verdicts in a bad order.
--
-- materialized: no
-- with: revision/revision_responses
select
    entry,
    coalesce(responses.conversation_id <> tasks.conversation_id, false) as is_older,
    responses.*
from revision_responses as responses
natural join $entries
left join tasks using (benchmark, dataset_revision, task_id);

-- name: wanted_entry_tasks
-- One row: an entry and a task of the blocks whose data files are to be written.
--
-- with: figures/shared/drilled_tasks
select
    wanted.entry,
    drilled_tasks.task_id
from $wanted as wanted
inner join drilled_tasks using (block);

-- name: shown_verdicts
-- One row: a verdict of a shown judge configuration on a shown response and a
-- current criterion, in one of its readings.
--
-- with: revision/revision_graded_verdicts, figures/shared/shown_responses
select
    judge_config,
    shown_responses.entry,
    shown_responses.is_older,
    criteria.position,
    verdicts.*
from revision_graded_verdicts as verdicts
natural join $shown_judge_configs
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join shown_responses using (response_id)
where verdicts.criterion_hash = criteria.content_hash;

-- name: shown_grounds
-- One row: a shown verdict. `wording` is the rewritten criterion that it is on, NULL
-- for the original one; `chunks` is the evidence from the chunks of a response that
-- is too long for its judge, NULL for a response that was judged as a whole.
--
-- with: figures/shared/shown_verdicts
with searched as (
    select task_id, verdict_id,
        list(
            {
                round: "round", chunk: chunk_number, of: n_chunks, status: status,
                evidence: evidence
            }
            order by "round", chunk_number
        ) as chunks
    from evidence
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by task_id, verdict_id
)

select
    verdicts.*,
    variants.title as wording,
    searched.chunks
from shown_verdicts as verdicts
left join searched using (task_id, verdict_id)
left join criterion_variants as variants
    on verdicts.benchmark = variants.benchmark
        and verdicts.dataset_revision = variants.dataset_revision
        and verdicts.task_id = variants.task_id
        and verdicts.criterion_id = variants.original_id
        and verdicts.criterion_hash = variants.original_hash
        and verdicts.rubric = variants.rubric;

-- name: shown_points
-- One row: the score of a shown response under a judge configuration, with bounds
-- if criteria are undecided.
--
-- with: figures/shared/shown_runs
select
    response_scores.task_id,
    entry,
    response_id,
    response_scores.trial,
    judge_config,
    value,
    value_lower,
    value_upper,
    points,
    undecided_negative,
    undecided_positive,
    positive,
    response_points.n_decided,
    response_points.n_wanted
from intermediate.response_scores
inner join intermediate.response_points using (model_run_id, response_id, breakdown, label)
inner join intermediate.model_runs using (model_run_id)
natural join shown_runs
where response_scores.breakdown = 'all'
    and response_scores.score_name = $score;

-- name: shown_runs
-- One row: a shown model vintage under a shown judge configuration, with their labels `entry` and
-- `judge_config`. All other columns name a model run, so a natural join is by these.
select
    *,
    $benchmark as benchmark,
    $dataset_revision as dataset_revision
from $entries
cross join $shown_judge_configs;
