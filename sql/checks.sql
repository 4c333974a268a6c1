-- The rows that expectations check, a query for each of their tables.

-- name: criteria
-- One row: a criterion of a revision. Without a weight or a known class the
-- distance from the band is NULL: other expectations find such criteria.
--
-- with: revision/revision_criteria
select
    criteria.task_id || '/' || criteria.criterion_id as key,
    criteria.task_id, criteria.criterion_id, criteria.title,
    'criterion ' || criteria.criterion_id || ': weight '
    || coalesce(criteria.weight_text, criteria.weight::varchar, 'missing')
    || ', class ' || coalesce(criteria.severity, 'missing')
    || ', category ' || coalesce(criteria.category, 'missing') as note,
    criteria.weight,
    criteria.weight - trunc(criteria.weight) as weight_fraction,
    coalesce(criteria.severity, '(none)') as severity,
    abs(
        criteria.weight
        - greatest(least(criteria.weight, severities.max_weight), severities.min_weight)
    ) as distance_from_band,
    labels.label as known_category
from revision_criteria as criteria
inner join tasks using (benchmark, dataset_revision, task_id)
left join severities using (benchmark, severity)
left join labels
    on criteria.benchmark = labels.benchmark
        and labels.field in ('', coalesce(tasks.field, ''))
        and labels.kind = 'category'
        and criteria.category = labels.label
order by criteria.task_id, criteria.position;

-- name: judged_responses
-- One row: a usable response of a revision with verdicts of a judge, and the number
-- of its criteria without one. People who label are no judges. A response that a
-- judge decided only on criteria that a succession to it drew, or one to a panel,
-- which makes no calls, is not begun.
with run_responses as (
    select response_id, model_run_id, judging_id
    from intermediate.wanted_responses
    inner join intermediate.model_runs
        using (model_run_id, judging_id, benchmark, dataset_revision)
    anti join intermediate.people_who_label
        using (benchmark, dataset_revision, judge, judge_config_hash)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

drawn as (
    select judging_id as predecessor_id, successor_id, task_id, criterion_id,
        successor_id not in (
            select judging_id from intermediate.graded_verdicts where source = 'judged'
        ) as is_by_panel
    from intermediate.latest_successions
    inner join succession_draws using (succession_id, benchmark, dataset_revision)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

undecided as (
    from run_responses
    anti join intermediate.decided_responses using (model_run_id, response_id)
),

numbers as (
    select response_id, model_run_id, 0 as n_missing
    from run_responses
    semi join intermediate.decided_responses using (model_run_id, response_id)
    union all
    select response_id, model_run_id, count(*) - count(verdict_id) as n_missing
    from intermediate.judged_criteria
    inner join undecided using (model_run_id, response_id)
    where status <> 'no_response'
    group by response_id, model_run_id
    having count(verdict_id) filter (not exists (
        from drawn
        where drawn.task_id = judged_criteria.task_id
            and drawn.criterion_id = judged_criteria.criterion_id
            and (
                drawn.successor_id = undecided.judging_id
                or (drawn.is_by_panel and drawn.predecessor_id <> undecided.judging_id)
            )
    )) > 0
)

select
    response_id || '/' || model_run_id as key,
    n_missing
from numbers
order by 1;

-- name: responses
-- One row: a response of a revision. A text of white space alone has no first
-- visible character.
--
-- with: revision/revision_responses
select
    response_id as key,
    status,
    left(text, 1) as first_character,
    coalesce(regexp_extract(text, '[^\s\pZ\x0b\x0c\x1c-\x1f\x85]'), '') as first_visible
from revision_responses
order by response_id;

-- name: rubrics
-- Every task of a revision, with properties of its rubric and conversation.
--
-- with: revision/revision_criteria, revision/revision_labelled_tasks, revision/revision_tasks
with positive as (
    select task_id, count(*) as n_positive
    from revision_criteria
    where weight > 0
    group by task_id
),

unknown_labels as (
    select task_id, list(distinct named.label order by named.label) as labels, count(*) as n_labels
    from revision_labelled_tasks as named
    inner join tasks using (benchmark, dataset_revision, task_id)
    anti join labels
        on named.benchmark = labels.benchmark
            and labels.field in ('', coalesce(tasks.field, ''))
            and named.kind = labels.kind
            and named.label = labels.label
    where named.kind in ('decision_type', 'economic_pathway')
        -- Another kind without a vocabulary may have any label.
        or (
            named.source = 'released'
            and (benchmark, named.kind) in (select (benchmark, kind) from labels)
        )
    group by task_id
)

select
    tasks.task_id as key,
    tasks.task_id,
    tasks.n_criteria || ' criteria, ' || coalesce(positive.n_positive, 0)
    || ' positive; turns ' || coalesce(tasks.turns::varchar, 'missing')
    || ' as ' || tasks.turn_pattern || '; id in ' || tasks.n_rows || ' row(s)'
    || coalesce('; unknown ' || unknown_labels.labels::varchar, '') as note,
    tasks.n_criteria,
    coalesce(positive.n_positive, 0) as n_positive,
    tasks.n_rows, tasks.turn_pattern,
    tasks.turns::double as turns,
    len(regexp_replace(tasks.turn_pattern, '[^ue]', '', 'g'))::double as n_user_turns,
    coalesce(unknown_labels.n_labels, 0) as n_unknown_labels
from revision_tasks as tasks
left join positive using (task_id)
left join unknown_labels using (task_id)
order by tasks.task_id;

-- name: verdicts
-- Every verdict of a revision, with the value that its status stands for. The
-- trial is NULL without its response, the position without its criterion.
--
-- with: revision/revision_verdicts
select
    verdicts.verdict_id as key,
    verdicts.value,
    case verdicts.status when 'met' then 1.0 when 'partial' then 0.5 when 'unmet' then 0.0
    end::double as value_of_status,
    responses.trial::double as response_trial,
    criteria.position::double as criterion_position
from revision_verdicts as verdicts
left join intermediate.rubric_criteria as criteria
    using (benchmark, dataset_revision, task_id, criterion_id)
left join responses using (response_id)
order by verdicts.verdict_id;
