-- name: cut_rubrics
-- One row: a criterion of a rubric, with its piece: the criteria of the same call,
-- if a judge decides `$piece_size` in each. Without a size there are no pieces.
with numbered as (
    select * exclude (rubric, original_id, content_hash),
        content_hash as criterion_hash,
        (row_number() over (
            partition by benchmark, dataset_revision, task_id order by position
        ) - 1) // $piece_size::bigint as call_index
    from intermediate.rubric_criteria
    where rubric = $rubric
)

select *,
    list(criterion_hash) filter (call_index is not null) over (
        partition by benchmark, dataset_revision, task_id, call_index order by position
        rows between unbounded preceding and unbounded following
    ) as piece,
    coalesce(md5(array_to_string(piece, ' ')), '') as piece_hash
from numbered;

-- name: judge_config
-- One row: the judge configuration that the parameters name.
select $judge as judge, $judge_config_hash as judge_config_hash, $template_hash as template_hash,
    $grading as grading, $judge_trial as judge_trial;

-- name: judge_verdicts
-- One row: a verdict under a judge configuration. On a million verdicts, a join with
-- `judge_config` takes longer than these conditions.
from verdicts
where judge = $judge
    and judge_config_hash = $judge_config_hash
    and template_hash = $template_hash
    and grading = $grading
    and judge_trial = $judge_trial;

-- name: done
-- One row: a stored verdict of a judge configuration that a run does not judge again.
-- It repeats temporary failures, unless their error says that they are settled.
--
-- with: queries/run/judge_verdicts
select response_id, criterion_id, criterion_hash, coalesce(piece_hash, '') as piece_hash
from judge_verdicts
where value is not null
    or (
        not $retry_failed
        and (
            not list_contains($temporary_failures, status)
            or ends_with(coalesce(error, ''), $settled)
        )
        and not is_accepted(error, $accepted)
    );

-- name: complete_responses
-- One row: a response of which a judge configuration lacks no verdict. This is known
-- without verdicts only if criteria are judged one by one in their original wording.
--
-- with: queries/run/judge_config
select response_id
from intermediate.decided_responses
inner join intermediate.model_runs using (model_run_id)
natural semi join judge_config
where $piece_size is null and $rubric = 'original';

-- name: responses_missing_verdicts
-- One row: a response with missing verdicts under a judge configuration, with the
-- numbers of them and of their calls; those with failed verdicts are last. For speed,
-- verdicts are read only of responses that may lack some, texts only of these rows.
--
-- with: revision/revision_responses, queries/run/complete_responses, queries/run/cut_rubrics,
--     queries/run/judge_verdicts, queries/run/done
with wanted_responses as (
    select response_id, benchmark, dataset_revision, task_id
    from revision_responses
    anti join complete_responses using (response_id)
    where status = 'ok'
        and list_contains($tasks, task_id)
        and [model, task_id] not in (select unnest($left_out::varchar[][]))
        and list_contains($trials, trial)
        and (
            list_contains(
                $configured, vintage || ' ' || model_config_hash || ' ' || model
            )
            or (
                source = 'imported'
                and vintage = $vintage
                and ($is_any_import or list_contains($imported, model))
            )
        )
),

lacking as (
    select response_id,
        count(*) as n_criteria,
        count(distinct coalesce(call_index, position)) as n_calls
    from wanted_responses
    inner join cut_rubrics using (benchmark, dataset_revision, task_id)
    anti join (from done semi join wanted_responses using (response_id)) as done
        using (response_id, criterion_id, criterion_hash, piece_hash)
    group by response_id
),

failed as (
    select response_id, max(created_at) as failed_at
    from judge_verdicts
    semi join lacking using (response_id)
    where value is null
    group by response_id
)

select
    responses.model,
    responses.task_id,
    lacking.response_id,
    lacking.n_criteria,
    lacking.n_calls
from lacking
inner join responses using (response_id)
left join failed using (response_id)
order by failed.failed_at nulls first,
    responses.task_id, responses.text, responses.model, responses.vintage, responses.trial;

-- name: conversations
-- One row: the assembled conversation of a task.
select task_id, conversation_id, list((role, content) order by position) as messages
from messages
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks, task_id)
group by task_id, conversation_id;

-- name: tried_cells
-- One row: a task and trial for which a model has a response; `is_filled` if none is to
-- be made, else with the time of the last one. A usable imported response fills its cell.
--
-- with: revision/revision_responses
select task_id, trial,
    bool_or(
        not (
            list_contains($temporary_failures, status)
            or ($retry_failed and status <> 'ok')
            or is_accepted(error, $accepted)
        )
    ) as is_filled,
    if(is_filled, null, epoch(max(created_at))) as failed_at_s
from revision_responses
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where model = $model
    and vintage = $vintage
    and (model_config_hash = $model_config_hash or source = 'imported')
group by task_id, trial;

-- name: missing_variants
-- One row: a criterion of some tasks without a wording in a rubric variant, in
-- the rubric's order.
--
-- with: revision/revision_criteria
with done as (
    select task_id, original_id as criterion_id, original_hash as content_hash
    from criterion_variants
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and rubric = $rubric
        and not (
            list_contains($temporary_failures, status)
            or ($retry_failed and status <> 'ok')
            or is_accepted(error, $accepted)
        )
)

select task_id, criterion_id, content_hash as criterion_hash, title as criterion_text
from revision_criteria
anti join done using (task_id, criterion_id, content_hash)
where list_contains($tasks, task_id)
order by list_position($tasks, task_id), position;

-- name: missing_verdicts
-- One row: a criterion of some responses that a judge configuration has not
-- decided, or another criterion of the same call. Responses are in the given
-- order, criteria in that of the rubric; calls that failed before are last.
--
-- with: queries/run/cut_rubrics, queries/run/judge_verdicts, queries/run/done
with chosen as (
    select
        unnest($responses::varchar[]) as response_id,
        generate_subscripts($responses::varchar[], 1) as position
),

failed as (
    select response_id, criterion_id, criterion_hash,
        max(created_at) as failed_at
    from judge_verdicts
    semi join chosen using (response_id)
    where value is null
    group by all
)

select response_id, task_id, model, trial, vintage,
    text as response_text,
    criterion_id, criterion_hash,
    title as criterion_text,
    weight, category, severity,
    kinds_of(title) as kinds,
    piece, call_index,
    done.criterion_id is null as is_missing
from chosen
inner join responses using (response_id)
inner join cut_rubrics as criteria using (benchmark, dataset_revision, task_id)
left join (from done semi join chosen using (response_id)) as done
    using (response_id, criterion_id, criterion_hash, piece_hash)
left join failed using (response_id, criterion_id, criterion_hash)
where status = 'ok'
qualify
    bool_or(is_missing) over (
        partition by response_id, coalesce(call_index, criteria.position)
    )
order by chosen.position,
    max(failed.failed_at) over (
        partition by response_id, coalesce(call_index, criteria.position)
    ) nulls first,
    criteria.position;

-- name: response_coverage
-- One row: the number of a model's tasks in a trial whose response has a status, and
-- the number of their criteria. Of a sampled and an imported response to one task, the
-- usable one counts.
--
-- with: revision/revision_responses
with cells as (
    select distinct on (model, trial, task_id) model, trial, source, status, n_criteria
    from revision_responses
    inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where list_contains($counting, vintage || ' ' || model_config_hash || ' ' || model)
        and list_contains($tasks, task_id)
    order by model, trial, task_id, status <> 'ok', response_id
)

select model, trial, source, status,
    count(*) as n,
    sum(n_criteria)::bigint as n_criteria
from cells
group by all;

-- name: rows_of_run
-- One row: the numbers of responses and judged verdicts of a run.
select
    (select count(*) from responses where run_id = $run_id) as responses_made,
    (select count(*) from verdicts where run_id = $run_id and source <> 'counted')
        as verdicts_made;

-- name: stored_judge_configs
-- One row: a judge configuration with verdicts on responses of some vintages:
-- imported ones, or any.
select distinct judge, judge_config_hash, template_hash, grading, judge_trial
from intermediate.model_runs
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages, vintage)
    and ($is_any_source or judge_config_hash = 'imported')
    and grading <> 'ternary_as_binary'
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
order by all;

-- name: stored_models
-- One row: a model that has responses, its first vintage of those given, and the
-- configuration that made the latest of its responses.
--
-- with: revision/revision_responses
select distinct on (model) model, vintage, model_config_hash
from revision_responses
where list_contains($vintages, vintage)
order by model, list_position($vintages, vintage), created_at desc;

-- name: stored_revisions
-- One row: a data-set revision with stored rows, those with most verdicts first.
select benchmark, dataset_revision,
    list(distinct split order by split) as splits,
    count(distinct task_id) as n_tasks,
    coalesce(any_value(n_responses), 0) as n_responses,
    coalesce(any_value(n_verdicts), 0) as n_verdicts
from split_members
left join (select benchmark, dataset_revision, count(*) as n_responses from responses group by all)
    using (benchmark, dataset_revision)
left join (select benchmark, dataset_revision, count(*) as n_verdicts from verdicts group by all)
    using (benchmark, dataset_revision)
group by all
order by n_verdicts desc, n_responses desc, benchmark, dataset_revision;

-- name: tasks_of_splits
-- One row: an admitted task in one of some splits, in the order of the splits.
--
-- with: revision/revision_split_members
select split, task_id
from revision_split_members
inner join tasks using (benchmark, dataset_revision, task_id)
where is_admitted
    and list_contains($splits, split)
order by list_position($splits, split), position;

-- name: unadopted_responses
-- The number of a model's responses under an earlier configuration that have no
-- response of the present one in their place.
select count(*) as n
from responses as earlier
anti join (
    from responses where model = $label and model_config_hash = $config_hash
) as present
    using (benchmark, dataset_revision, task_id, conversation_id, trial, vintage)
where earlier.model = $label and earlier.model_config_hash = $earlier_hash;

-- name: unadopted_verdicts
-- The number of a judge's verdicts under an earlier configuration that have no
-- verdict of the present one in their place.
select count(*) as n
from verdicts as earlier
anti join (
    from verdicts where judge = $label and judge_config_hash = $config_hash
) as present
    using (
        benchmark, dataset_revision, task_id, criterion_id, criterion_hash, model, trial, vintage,
        template_hash, grading, judge_trial
    )
where earlier.judge = $label and earlier.judge_config_hash = $earlier_hash;

-- name: verdict_coverage
-- One row: the number of criteria of a model's tasks in a trial with a status
-- (met, timeout, ...) under one judge configuration. Of several responses to one task,
-- the one with most decided criteria counts. Where every criterion of a response is
-- decided, its verdicts are not read, and the status of all is `ok`.
--
-- with: queries/run/judge_config, revision/revision_responses
with responses_to_tasks as (
    select response_id
    from revision_responses
    semi join tasks using (benchmark, dataset_revision, task_id, conversation_id)
),

counted as (
    select model_run_id, response_id, model, wanted.trial, task_id
    from intermediate.wanted_responses as wanted
    inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision)
    inner join responses_to_tasks using (response_id)
    natural semi join judge_config
    where list_contains($counting, vintage || ' ' || model_config_hash || ' ' || model)
        and list_contains($tasks, task_id)
),

decided as (
    select distinct model, trial, task_id, n_wanted
    from counted
    inner join intermediate.decided_responses using (model_run_id, response_id)
),

undecided as (
    from counted
    anti join decided using (model, trial, task_id)
),

judged as (
    select undecided.*, status,
        count(value) over (partition by response_id) as n_decided
    from undecided
    inner join intermediate.judged_criteria using (model_run_id, response_id)
    where status <> 'not_judged'
),

numbers as (
    select model, trial, 'ok' as status, n_wanted as n
    from decided
    union all
    select model, trial, status, 1 as n
    from judged
    qualify dense_rank() over (
        partition by model, trial, task_id
        order by n_decided desc, response_id
    ) = 1
)

select model, trial, status, sum(n)::bigint as n
from numbers
group by all;
