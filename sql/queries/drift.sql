-- name: new_members
-- One row: a verdict for a judge configuration's control set: as many met as unmet
-- ones if possible; of each kind, first those that people labelled, in random order,
-- then others from as many tasks as possible, a few criteria of each response; for a
-- judge of groups, the whole pieces with these criteria. The choice depends on content
-- only.
-- Responses are materialized, so that each text is hashed once and not for each of
-- its verdicts.
--
-- `probability` is that of being drawn from the verdicts that sheets sampled. It is
-- NULL unless a sheet's label represents at least one verdict, or if only some of
-- the labelled pieces are drawn.
--
-- with: revision/revision_responses, queries/run/judge_verdicts
with usable_responses as materialized (
    select responses.response_id, responses.conversation_id,
        md5(responses.response_id) as response_order,
        md5(responses.text) as text_hash
    from revision_responses as responses
    inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where responses.status = 'ok'
        and tasks.is_admitted
),

-- Equal responses share one call, so only one of their verdicts shows the
-- judge's stability.
decided as (
    select distinct on (verdicts.task_id, usable_responses.text_hash, verdicts.criterion_hash)
        verdicts.task_id, verdicts.verdict_id, verdicts.value, usable_responses.response_order
    from judge_verdicts as verdicts
    inner join usable_responses using (response_id)
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    where verdicts.criterion_hash = criteria.content_hash
        and verdicts.source = 'judged'
        and verdicts.value is not null
    order by usable_responses.response_order, verdicts.verdict_id
),

labels as (
    select distinct verdict_id, factor
    from judge_verdicts
    inner join intermediate.imported_decisions using (response_id, criterion_id, criterion_hash)
    left join intermediate.sampled_labels
        using (response_id, criterion_id, criterion_hash, steps)
    where is_label and (steps = 'ternary') = (grading = 'ternary')
),

numbered as (
    select decided.*, labels.factor,
        labels.verdict_id is not null as is_labelled,
        dense_rank() over (partition by task_id order by response_order) as response_number,
        row_number() over (
            partition by response_order, value order by md5(decided.verdict_id)
        ) as criterion_number,
        (criterion_number - 1) // $of_response as selection_round
    from decided
    left join labels using (verdict_id)
),

ranked as (
    select verdict_id, is_labelled, factor,
        count(*) over (partition by value, is_labelled) as n_alike,
        row_number() over (
            partition by value
            order by is_labelled desc, if(is_labelled, md5(verdict_id), ''),
                selection_round, response_number, md5(task_id), criterion_number
        ) as position
    from numbered
),

-- The first met, the first unmet, the second met, ...: where one kind ends, the
-- others fill up. A piece has the order of its first verdict.
pieces as (
    select verdicts.*, usable_responses.conversation_id, ranked.* exclude (verdict_id),
        coalesce(verdicts.piece_hash, verdicts.verdict_id) as piece,
        min(row(ranked.position, -verdicts.value)) over (
            partition by verdicts.response_id, piece
        ) as piece_order
    from ranked
    inner join verdicts using (verdict_id)
    inner join usable_responses using (response_id)
),

-- Whole pieces, until there are enough verdicts.
drawn as (
    from pieces
    qualify count(*) over (
        order by piece_order, response_id, piece
        groups between unbounded preceding and 1 preceding
    ) < $number
),

shares as (
    select *,
        count(*) over (partition by value, is_labelled) / n_alike as drawn_share
    from drawn
)

select benchmark, dataset_revision, task_id, judge, judge_config_hash, template_hash, grading,
    judge_trial, verdict_id, response_id, conversation_id, criterion_id, criterion_hash, model,
    trial, vintage,
    value as first_value,
    case
        when factor >= 1 and (piece_hash is null or drawn_share = 1)
            then drawn_share / factor
    end as probability
from shares
order by piece_order, response_id, piece, position, value desc;

-- name: control_criteria_to_judge
-- One row: a criterion in a call that a night still needs for a control set: a
-- member has no verdict in the night, or a temporary failure (`stored_status`) that
-- is not settled, or one whose reply is accepted by now.
-- All criteria of the call are rows, with the inputs of the judge (missing ones
-- are NULL); `is_missing` marks those in the control set.
--
-- with: queries/run/cut_rubrics
with tonight as (
    select response_id, criterion_id, criterion_hash, status,
        ends_with(coalesce(error, ''), $settled) as is_settled
    from control_verdicts
    where set_id = $set_id
        and judge_vintage = $night
        and not is_accepted(error, $accepted)
),

members as (
    select control_set.*,
        responses.text as response_text,
        criteria.title as criterion_text,
        criteria.weight, criteria.category, criteria.severity,
        kinds_of(criteria.title) as kinds,
        criteria.position, criteria.piece, criteria.call_index,
        true as is_missing,
        tasks.task_id is not null as has_same_prompt,
        tonight.status as stored_status
    from control_set
    left join cut_rubrics as criteria
        using (benchmark, dataset_revision, task_id, criterion_id, criterion_hash)
    left join (from tasks where is_admitted) as tasks
        using (benchmark, dataset_revision, task_id, conversation_id)
    left join tonight using (response_id, criterion_id, criterion_hash)
    left join (from responses where status = 'ok') as responses using (response_id)
    where control_set.set_id = $set_id
    qualify
        bool_or(
            tonight.status is null
            or (list_contains($temporary_failures, tonight.status) and not tonight.is_settled)
        ) over (
            partition by
                control_set.response_id,
                coalesce(criteria.call_index::varchar, control_set.criterion_id)
        )
),

-- The other criteria of the same calls.
beside as (
    select distinct members.* replace (
            criteria.criterion_id as criterion_id, criteria.criterion_hash as criterion_hash,
            criteria.title as criterion_text, criteria.weight as weight,
            criteria.category as category, criteria.severity as severity,
            kinds_of(criteria.title) as kinds, criteria.position as position, false as is_missing,
            null as verdict_id, null as first_value, null as stored_status
        )
    from members
    inner join cut_rubrics as criteria using (benchmark, dataset_revision, task_id, call_index)
    where criteria.criterion_id not in (
        select siblings.criterion_id
        from members as siblings
        where siblings.response_id = members.response_id
    )
)

select * from members
union all by name
select * from beside
order by task_id, response_id, position, criterion_id;

-- name: decided_members
-- One row: a control set, with the number of its members that are decided in a
-- night.
with sets as (
    select set_id, judge, count(*) as n_members
    from control_set
    where list_contains($sets, set_id)
    group by set_id, judge
)

select sets.judge, sets.n_members, coalesce(nights.n_decided, 0) as n_decided
from sets
left join judge_drift as nights
    on sets.set_id = nights.set_id and nights.night = $night
order by all;

-- name: differing_by_task
-- One row: a task of a control set in a night, with the number of decisions that are
-- not the first ones.
select control_verdicts.judge_vintage as night, control_set.task_id,
    count(*) filter (control_verdicts.value <> control_set.first_value) as n_differing
from control_set
inner join control_verdicts using (set_id, response_id, criterion_id, criterion_hash)
where set_id = $set_id
group by all
order by all;
