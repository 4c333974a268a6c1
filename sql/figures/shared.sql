-- Steps that several queries share. A query starts with the steps that it reads,
-- and with the steps that those read.

-- name: entries
-- One row: a sampling of a configured model that is shown, under its label.
select columns(*)::varchar
from $entries as given (model, model_config_hash, vintage, entry);

-- name: shown_judge_configs
-- One row: a judge configuration that is shown, under its label.
select columns(* exclude (judge_trial))::varchar, judge_trial::bigint as judge_trial
from $shown_judge_configs as given (judge, judge_config_hash, template_hash, grading, judge_trial,
    judge_config);

-- name: changes
-- One row: a current vintage and the earlier one that it is compared with.
select *
from $changes as given (
    model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
    earlier, later, split, ci_low, ci_high, p_adjusted
);

-- name: change_values
-- One row: a task's value in both vintages of a change.
select changes.*, task_id,
    any_value(mean_score) filter (vintage = earlier) as earlier_value,
    any_value(mean_score) filter (vintage = later) as later_value
from changes
inner join task_scores
    using (model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial)
where task_scores.benchmark = $benchmark
    and task_scores.dataset_revision = $dataset_revision
    and score_name = $score
group by all
having earlier_value is not null and later_value is not null;

-- name: shown_splits
-- One row: a split of the report.
select distinct split, list_contains($hard_splits::varchar[], split) as is_hard
from split_members
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split));

-- name: shown_sets
-- One row: a shown task set: a split, or an own hard selection; both if $is_hard
-- is NULL.
select split, false as is_own_hard, is_hard from shown_splits where not coalesce($is_hard, false)
union all
select unnest($own_hard_splits::varchar[]), true, true where coalesce($is_hard, true);

-- name: shown_members
-- One row: a task of a shown task set.
select task_id
from scoped_task_set_members;

-- name: shown_tasks
-- One row: a task of the report.
select distinct task_id
from split_members
inner join shown_splits using (split)
where split_members.benchmark = $benchmark and split_members.dataset_revision = $dataset_revision;

-- name: drilled_tasks
-- One row: a task with a page, and the block of tasks that share its data files.
-- A task's block does not depend on other tasks.
select task_id, (md5_number(task_id) % 64)::integer as block
from tasks
semi join shown_tasks using (task_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and is_admitted;

-- name: shown_responses
-- One row: a response of a shown model; `is_older` if it is a response to an
-- earlier conversation of the task.
select entries.entry,
    coalesce(responses.conversation_id <> tasks.conversation_id, false) as is_older,
    responses.*
from responses
inner join entries using (model, model_config_hash, vintage)
left join tasks using (benchmark, dataset_revision, task_id)
where responses.benchmark = $benchmark and responses.dataset_revision = $dataset_revision;

-- name: wanted_entry_tasks
-- One row: an entry and a task of the blocks whose data files are to be written.
select wanted.entry, drilled_tasks.task_id
from $wanted as wanted (entry, block)
inner join drilled_tasks using (block);

-- name: shown_verdicts
-- One row: a verdict of a shown judge configuration on a shown response and a
-- current criterion, in one of its readings.
select shown_responses.entry, shown_responses.is_older, criteria.position, verdicts.*
from scoped_graded_verdicts as verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join shown_responses using (response_id)
where verdicts.criterion_hash = criteria.content_hash;

-- name: shown_grounds
-- One row: a shown verdict that was not made on the original criterion and the
-- whole response: `wording` is the rewritten criterion, `chunks` is the evidence
-- from the chunks of a response that is too long for its judge.
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

select verdicts.*, variants.title as wording, searched.chunks
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
select response_scores.task_id, entry, response_id, response_scores.trial, judge_config, value,
    value_lower, value_upper, points, undecided_negative, undecided_positive, positive,
    response_points.n_decided, response_points.n_wanted
from intermediate.response_scores
inner join intermediate.response_points using (model_run_id, response_id, breakdown, label)
inner join scoped_model_runs using (model_run_id)
where response_scores.breakdown = 'all' and response_scores.score_name = $score;

-- name: labelled_criteria
-- One row: a criterion, with its labels of the kinds that only some benchmarks
-- have.
with further as (
    select task_id, criterion_id,
        list({ 'kind': kind, 'label': label } order by kind, label) as labels
    from criterion_labels
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by task_id, criterion_id
)

select criteria.*, coalesce(further.labels, []) as labels
from criteria
left join further using (task_id, criterion_id)
where criteria.benchmark = $benchmark and criteria.dataset_revision = $dataset_revision;

-- name: response_costs
-- One row: the cost of a model's responses on a split and of judging them;
-- without a judge configuration, the responses without any verdict.
with judged as (
    select judge_config, split, entry, response_usd,
        if(is_verdicts_usd_unknown, null, verdicts_usd) as verdicts_usd
    from scoped_judged_responses
    where not is_own_hard
),

unjudged as (
    select split, entry, cost_usd as response_usd
    from shown_responses
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    inner join shown_splits using (split)
    anti join judged using (entry)
    where not is_own_hard
)

select judge_config, split,
    entry as model,
    round(exact_avg(response_usd), 12) as response_usd,
    round(exact_avg(verdicts_usd), 12) as verdicts_usd,
    case
        when count(*) = count(response_usd) then round(exact_sum(response_usd), 9)
    end as all_responses_usd,
    count(*) as n_responses,
    count(*) - count(response_usd) as n_unpriced_responses
from (from judged union all by name from unjudged)
group by all;

-- name: sampled_scores
-- One row: a model's score in one vintage under one judge configuration, with the
-- vintage's index in time.
with first_verdicts as (
    select judge, judge_config_hash, template_hash, grading, judge_trial,
        min(created_at) as first_judged_at
    from verdicts
    where benchmark = $benchmark
    group by all
),

-- Nights in which the judge was out of control; no score is compared with
-- theirs.
drifted as (
    select distinct dataset_revision,
        night as vintage,
        judge, judge_config_hash, template_hash, grading
    from judge_drift
    where benchmark = $benchmark and is_out_of_control
),

figures as (
    -- The time is the same for all judges of the vintage, whichever responses
    -- they judged.
    select displayed.* replace (
            min(first_response_at) over (
                partition by model, model_config_hash, dataset_revision, vintage
            ) as first_response_at
        ),
        first_verdicts.first_judged_at,
        drifted.judge is not null as is_drifted
    from intermediate.displayed_scores as displayed
    inner join first_verdicts using (judge, judge_config_hash, template_hash, grading, judge_trial)
    left join drifted
        using (dataset_revision, vintage, judge, judge_config_hash, template_hash, grading)
    where benchmark = $benchmark
        and score_name = $score
        and breakdown = 'all'
        and not is_own_hard
        -- A vintage without a complete task is skipped: it neither continues nor
        -- ends a line.
        and mean_score is not null
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
)

select *,
    dense_rank() over (
        partition by split, model, judge, judge_trial
        order by first_response_at, dataset_revision, model_config_hash, vintage
    ) as sampling_order
from figures;

-- name: judge_handovers
-- One row: a judge that replaced another: it began after the other had
-- ended.
with spans as (
    select split, model, judge, judge_trial, min(first_response_at) as since,
        max(first_response_at) as until
    from sampled_scores
    where judge_config_hash <> 'imported'
    group by all
)

-- A judge that begins after another has ended replaces it.
select later.* exclude (until),
    arg_max(earlier.judge, (earlier.until, earlier.judge)) as previous_judge
from spans as later
inner join spans as earlier using (split, model, judge_trial)
where earlier.until < later.since
group by all;
