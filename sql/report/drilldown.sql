-- name: response_states
-- The tasks that each entry responded to in any trial, a flag that is true if one
-- of these responses is usable, and the trials.
--
-- with: figures/shared/shown_responses, figures/shared/drilled_tasks
select entry, task_id, bool_or(status = 'ok') as is_usable, list(distinct trial) as trials
from shown_responses
semi join drilled_tasks using (task_id)
group by all;

-- name: verdicts_with_replies
-- The verdicts of judges on some responses, with the keys by which pages find their
-- replies, and all verdicts from the same calls: the ledger knows only the verdict that
-- a call was made for. Without $is_all, only failed verdicts.
--
-- with: figures/shared/shown_grounds, figures/shared/wanted_entry_tasks
with wanted as (
    select task_id, entry,
        concat_ws(' ', judge_config, trial, position, case when is_older then 'older' end) as key,
        -- Of a cascade, or of a response in chunks, only the last call is shown.
        chunks is not null or decided_by is not null as shows_last_call,
        verdict_id
    from shown_grounds
    semi join wanted_entry_tasks using (entry, task_id)
    where source = 'judged'
        and grading <> 'ternary_as_binary'
        and ($is_all or status not in ('met', 'partial', 'unmet'))
),

-- Verdicts on the same text share a call. Calls of other judges may be equal in
-- all other columns, so the latency distinguishes them.
texts as (
    select response_id, hash(conversation_id, text) as text_hash
    from responses
    where task_id in (select task_id from wanted)
),

calls as (
    select verdicts.verdict_id,
        hash(
            texts.text_hash, verdicts.criterion_hash, verdicts.template_hash, verdicts.grading,
            verdicts.judge_trial,
            coalesce(verdicts.latency_s::varchar, verdicts.judge_config_hash)
        ) as call
    from verdicts
    inner join texts using (response_id)
    where verdicts.source = 'judged' and verdicts.task_id in (select task_id from wanted)
)

select wanted.entry, wanted.task_id, wanted.key, wanted.shows_last_call, wanted.verdict_id,
    list(others.verdict_id) as verdict_ids
from wanted
inner join calls using (verdict_id)
inner join calls as others using (call)
group by all;

-- name: blocks
-- One row: the responses of an entry to the tasks of a block, and a name that
-- changes with anything that the drill-down shows of them (the query `sections`),
-- with the program, and with the judges' replies in the ledger, if they are shown.
-- A row's key and time stand for its texts: a row that is made again has another time.
--
-- with: figures/shared/shown_grounds, figures/shared/shown_points, figures/shared/drilled_tasks
with prints as (
    select task_id, entry,
        hash('response', trial, is_older, response_id, created_at) as print
    from shown_responses
    union all by name
    select task_id, entry,
        source = 'judged' and ($is_all or status not in ('met', 'partial', 'unmet')) as has_reply,
        hash(
            'verdict', verdict_id, trial, is_older, judge_config, position, grading, wording,
            chunks, created_at
        ) as print
    from shown_grounds
    union all by name
    select task_id, entry,
        hash(
            'points', response_id, trial, judge_config, value, value_lower, value_upper, points,
            undecided_negative, undecided_positive, positive, n_decided, n_wanted
        ) as print
    from shown_points
)

select prints.entry, drilled_tasks.block,
    -- Two sums of the same hashes, which do not depend on the order: equal rows would
    -- cancel each other in the first one.
    left(md5(concat_ws(
        ' ', $program, entry, count(*), bit_xor(hash(task_id, print)), sum(hash(task_id, print)),
        if(bool_or(has_reply), $replies, '')
    )), 16) as name
from prints
inner join drilled_tasks using (task_id)
group by prints.entry, drilled_tasks.block
order by prints.entry, drilled_tasks.block;

-- name: marks
-- The outcome of each criterion of every response under every judge configuration,
-- one letter each, in the order of the rubric; with positions if some are missing.
--
-- with: figures/shared/shown_runs, figures/shared/shown_verdicts, figures/shared/drilled_tasks
with outdated as (
    -- A response to an earlier conversation is left out if the same trial has one
    -- to the current conversation: the task's page shows the latter.
    select older.response_id
    from shown_responses as older
    semi join (from shown_responses where not is_older) as newer using (entry, task_id, trial)
    where older.is_older
),

decided as (
    select entry, judge_config, trial, task_id, position, coalesce(marks.mark, $unknown) as mark
    from shown_verdicts
    anti join outdated using (response_id)
    left join $marks as marks using (status)
),

-- A failed response: its criteria are wanted, but could not be decided.
lost as (
    select entry, judge_config, trial, task_id, criteria.position, $lost as mark
    from intermediate.wanted_responses
    inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision)
    natural join shown_runs
    inner join criteria using (benchmark, dataset_revision, task_id)
    anti join outdated using (response_id)
    where wanted_responses.status <> 'ok'
)

select entry, judge_config, trial, task_id,
    string_agg(mark, '' order by position) as marks,
    if(count(*) = any_value(n_criteria), null, list(position order by position)) as positions
from (from decided union all by name from lost)
inner join tasks using (task_id)
semi join drilled_tasks using (task_id)
where benchmark = $benchmark and dataset_revision = $dataset_revision
group by all
order by entry, judge_config, trial, task_id;

-- name: rubrics
-- The conversation of each task as it is sent, and its criteria, as JSON. For a
-- task that is not assembled yet, the turns are those of the data set.
--
-- with: revision/revision_conversation_turns, revision/revision_criteria,
--     revision/revision_criterion_labels, figures/shared/drilled_tasks
with sent as (
    select messages.*
    from messages
    -- Conversations of an earlier assembly are left out.
    semi join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

data_set_turns as (
    select task_id,
        -- Three numbers for each turn of the data set: prompt, reference texts, reply.
        unnest([
            { turn: 3 * position, role: 'user', content: prompt },
            {
                turn: 3 * position + 1, role: 'reference texts',
                content: array_to_string(reference_texts, chr(10) || chr(10))
            },
            { turn: 3 * position + 2, role: 'assistant', content: response }
        ], recursive := true)
    from revision_conversation_turns
    where task_id not in (select task_id from sent)
),

messages_and_notes as (
    select task_id, position as turn, role, content, true as is_sent from sent
    union all by name
    select *, false as is_sent from data_set_turns
),

turns as (
    select task_id,
        bool_and(is_sent) as is_sent,
        to_json(list({ role: role, content: content } order by turn)) as conversation
    from messages_and_notes
    where is_sent or trim(content) <> ''
    group by task_id
),

own_labels as (
    select task_id, criterion_id,
        list({ 'kind': kind, 'label': label } order by kind, label) as labels
    from revision_criterion_labels
    group by task_id, criterion_id
),

rubrics as (
    select task_id,
        to_json(list({
            position: position,
            key: left(sha256(criterion_id), 16),
            criterion_id: criterion_id, title: title, category: category, severity: severity,
            weight: weight, labels: coalesce(labels, [])
        } order by position)) as criteria
    from revision_criteria
    left join own_labels using (task_id, criterion_id)
    group by task_id
)

select task_id,
    coalesce(turns.conversation, '[]') as conversation,
    coalesce(rubrics.criteria, '[]') as criteria,
    coalesce(turns.is_sent, false) as is_sent
from drilled_tasks
left join rubrics using (task_id)
left join turns using (task_id)
order by all;

-- name: scores
-- Each task's score for each entry under each judge configuration, the mean over its
-- trials; with bounds if it is undecided.
--
-- with: figures/shared/shown_runs
select judge_config, entry, task_id,
    mean_score as value,
    mean_lower as value_lower,
    mean_upper as value_upper
from task_scores
natural join shown_runs
where score_name = $score
order by judge_config, entry, task_id;

-- name: sections
-- One row: an entry and a task, with its responses by trial, each as JSON with its
-- text last; with JSON of all verdicts on them, and of their scores under each judge
-- configuration. A verdict has grounds unless one judge decided the original
-- criterion alone on the whole response. Verdicts on earlier contents of a criterion
-- are left out.
--
-- with: figures/shared/shown_grounds, figures/shared/shown_points,
--     figures/shared/wanted_entry_tasks
with entry_responses as (
    select task_id, entry,
        list(to_json({
            trial: trial, is_older: is_older, response_id: response_id, status: status,
            error: error, source: source, served_model: served_model, degraded: degraded,
            chars_alnum: chars_alnum, completion_tokens: completion_tokens,
            reasoning_tokens: reasoning_tokens, cost_usd: cost_usd, latency_s: latency_s, text: text
        }) order by trial, is_older, response_id) as responses
    from shown_responses
    semi join wanted_entry_tasks using (entry, task_id)
    group by task_id, entry
),

verdicts as (
    select task_id, entry,
        to_json(list({
            trial: trial, is_older: is_older, judge_config: judge_config, position: position,
            status: status, error: error,
            -- Another reading of a verdict is listed after the verdict with
            -- the explanation and the grounds.
            explanation: if(grading = 'ternary_as_binary', null, explanation),
            grounds: if(
                grading = 'ternary_as_binary'
                or coalesce(wording, chunks::varchar, decided_by, n_in_call::varchar) is null,
                null,
                {
                    wording: wording, chunks: chunks, decided_by: decided_by,
                    escalated_because: escalated_because, n_in_call: n_in_call,
                    probability: probability
                }
            )
        } order by trial, judge_config, position, verdict_id)) as verdicts
    from shown_grounds
    semi join wanted_entry_tasks using (entry, task_id)
    group by task_id, entry
),

points as (
    select task_id, entry,
        to_json(list({
            response_id: response_id, judge_config: judge_config, value: value,
            value_lower: value_lower, value_upper: value_upper, points: points,
            points_lower: points + undecided_negative, points_upper: points + undecided_positive,
            positive: positive, n_decided: n_decided, n_wanted: n_wanted
        } order by trial, judge_config)) as points
    from shown_points
    semi join wanted_entry_tasks using (entry, task_id)
    group by task_id, entry
)

select entry_responses.entry, drilled_tasks.block, task_id, entry_responses.responses,
    coalesce(verdicts.verdicts, '[]') as verdicts,
    coalesce(points.points, '[]') as points
from entry_responses
inner join drilled_tasks using (task_id)
left join verdicts using (entry, task_id)
left join points using (entry, task_id)
order by entry_responses.entry, drilled_tasks.block, task_id;

-- name: tasks
-- The admitted tasks of the chosen splits in their order, with the texts for search.
--
-- with: revision/revision_conversation_turns, revision/revision_criteria,
--     revision/revision_labelled_tasks, revision/revision_tasks, figures/shared/drilled_tasks
with categories as (
    select task_id, list(distinct category order by category) as categories
    from revision_criteria
    where category is not null
    group by task_id
),

other_labels as (
    select task_id, list({ 'kind': kind, 'label': label } order by kind, label) as labels
    from revision_labelled_tasks
    where kind not in ('decision_type', 'economic_pathway')
    group by task_id
),

hard_tasks as (
    select task_id
    from intermediate.task_set_members
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and is_own_hard
),

openings as (
    select task_id, prompt
    from revision_conversation_turns
    where position = 0
)

select tasks.task_id, drilled_tasks.block, tasks.field, tasks.topic, tasks.expert, tasks.turns,
    tasks.splits, tasks.decision_types, tasks.economic_pathways, categories.categories,
    coalesce(other_labels.labels, []) as labels,
    tasks.n_criteria,
    task_id in (select task_id from hard_tasks) as is_hard,
    left(openings.prompt, $n_characters) as opening
from revision_tasks as tasks
inner join drilled_tasks using (task_id)
left join categories using (task_id)
left join other_labels using (task_id)
left join openings using (task_id)
order by tasks.field nulls last, tasks.task_id;
