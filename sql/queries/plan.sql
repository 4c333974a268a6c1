-- name: decided_before
-- One row: the other template with most of the verdicts that a judge lacks under
-- the current template, and their number.
--
-- with: revision/revision_verdicts, queries/run/judge_verdicts
select template_hash, count(*) as n_verdicts
from revision_verdicts
anti join (from judge_verdicts where value is not null) as now
    using (response_id, criterion_id, criterion_hash)
where judge = $judge
    and judge_config_hash = $judge_config_hash
    and grading = $grading
    and judge_trial = $judge_trial
    and source = 'judged'
    and value is not null
    and template_hash <> $template_hash
group by template_hash
order by n_verdicts desc, template_hash
limit 1;

-- name: failed_second
-- One row: a response with the number of a cascade's verdicts that are repeated
-- because its second judge failed.
--
-- with: queries/run/judge_verdicts
select verdicts.response_id, count(*) as n_criteria
from judge_verdicts as verdicts
inner join intermediate.rubric_criteria as criteria
    using (benchmark, dataset_revision, task_id, criterion_id)
where verdicts.criterion_hash = criteria.content_hash
    and list_contains($responses, verdicts.response_id)
    and criteria.rubric = $rubric
    and verdicts.escalated_because is not null
    and list_contains($temporary_failures, verdicts.status)
group by verdicts.response_id;

-- name: control_calls
-- The number of members of a judge's control set, and of calls for those that have
-- no value in a night: one for a criterion, or for a piece of a rubric.
--
-- with: queries/run/judge_config
select count(*) as n_members,
    count(distinct concat(
        control_set.response_id, coalesce(verdicts.piece_hash, verdicts.criterion_id)
    )) filter (done.set_id is null) as n_calls
from control_set
natural semi join judge_config
left join (
    select set_id, response_id, criterion_id, criterion_hash
    from control_verdicts
    where judge_vintage = $night and value is not null
) as done using (set_id, response_id, criterion_id, criterion_hash)
inner join verdicts using (verdict_id)
where control_set.benchmark = $benchmark and control_set.dataset_revision = $dataset_revision;

-- name: first_verdicts
-- One row: a criterion with a judge's values in the order of its repetitions (NULL
-- for a failure), the confidence of the first, and the other columns that a
-- cascade's rule needs.
--
-- with: revision/revision_verdicts
select verdicts.response_id, verdicts.criterion_id,
    list(verdicts.value order by verdicts.judge_trial) as first_values,
    first(verdicts.confidence order by verdicts.judge_trial) as confidence,
    criteria.weight, criteria.category, criteria.severity,
    kinds_of(criteria.title) as kinds
from revision_verdicts as verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
where verdicts.judge_config_hash = $judge_config_hash
    and verdicts.template_hash = $template_hash
    and verdicts.judge_trial <= $n_repetitions
    and verdicts.decided_by is null
group by all
having count(*) = $n_repetitions
order by verdicts.response_id, verdicts.criterion_id
limit 10000;

-- name: history_values
-- One row: a task's latest value in each vintage of a model's label, of any
-- revision and configuration, under a judge's label.
select task_scores.model, task_scores.task_id,
    arg_max(task_scores.mean_score, model_runs.first_response_at) as value
from task_scores
inner join intermediate.model_runs using (model_run_id)
where task_scores.benchmark = $benchmark
    and task_scores.judge = $judge
    and task_scores.judge_trial = 1
    and task_scores.grading = $grading
    and task_scores.score_name = $score
    and list_contains($models, task_scores.model)
    and task_scores.mean_score is not null
group by task_scores.model, task_scores.vintage, task_scores.task_id
order by min(model_runs.first_response_at);

-- name: judge_calls
-- One row: a call that decided on a criterion, or searched a chunk of a
-- response for evidence on it. A call for several criteria is represented by
-- the first, whose share of the tokens is multiplied by their number.
select judge, judge_config_hash, template_hash,
    prompt_tokens * coalesce(n_in_call, 1) as prompt_tokens,
    cached_tokens * coalesce(n_in_call, 1) as cached_tokens,
    completion_tokens * coalesce(n_in_call, 1) as completion_tokens
from verdicts
where coalesce(position_in_call, 1) = 1
union all
select judge, judge_config_hash, template_hash, evidence.prompt_tokens, evidence.cached_tokens,
    evidence.completion_tokens
from evidence
inner join verdicts using (verdict_id);
