-- One row: a verdict that a sheet can draw, on a criterion of a response that
-- the judge has begun: what it adds to its task's value if it is met, whether
-- the judge's decisions on the response are complete, so that it counts, what
-- the judge says, how far others differ from that, and what people said before.
with others as (
    select verdicts.response_id, verdicts.criterion_id, verdicts.criterion_hash,
        avg(pow(verdicts.value - judged.value, 2)) as disagreement,
        count(*) as n_others
    from intermediate.graded_verdicts as verdicts
    inner join intermediate.graded_verdicts as judged
        on verdicts.response_id = judged.response_id
            and verdicts.criterion_id = judged.criterion_id
            and verdicts.criterion_hash = judged.criterion_hash
            and judged.judging_id = $judging_id
            and verdicts.judging_id <> judged.judging_id
            and judged.value is not null
    where list_contains($response_ids::varchar[], verdicts.response_id)
        and verdicts.value is not null
        and (verdicts.grading = 'ternary') = ($steps = 'ternary')
        and (verdicts.benchmark, verdicts.judge)
        not in (select (benchmark, judge) from labellers)
    group by all
),

labelled as (
    select response_id, criterion_id, criterion_hash, avg(value) as label_value
    from intermediate.imported_decisions
    where is_label and steps = $steps
    group by all
)

select responses.response_id,
    responses.task_id as task,
    responses.model, responses.vintage, criteria.criterion_id,
    criteria.content_hash as criterion_hash,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity,
    criteria.weight / bounds.denominator as worth,
    points.n_decided = points.n_wanted as is_counted,
    judged.value as judge_value,
    coalesce(others.disagreement, 0) as disagreement,
    coalesce(others.n_others, 0) as n_others,
    labelled.label_value
from intermediate.response_points as points
inner join intermediate.model_runs
    on points.model_run_id = model_runs.model_run_id
        and model_runs.judging_id = $judging_id
        and (model_runs.is_latest or not $of_latest)
inner join responses using (response_id)
inner join criteria
    on responses.benchmark = criteria.benchmark
        and responses.dataset_revision = criteria.dataset_revision
        and responses.task_id = criteria.task_id
inner join intermediate.score_bounds as bounds
    on criteria.benchmark = bounds.benchmark
        and criteria.dataset_revision = bounds.dataset_revision
        and criteria.task_id = bounds.task_id
        and bounds.score_name = $score
        and bounds.breakdown = $breakdown
        and bounds.label = $label
left join intermediate.graded_verdicts as judged
    on responses.response_id = judged.response_id
        and criteria.criterion_id = judged.criterion_id
        and criteria.content_hash = judged.criterion_hash
        and judged.judging_id = $judging_id
left join others
    on responses.response_id = others.response_id
        and criteria.criterion_id = others.criterion_id
        and criteria.content_hash = others.criterion_hash
left join labelled
    on responses.response_id = labelled.response_id
        and criteria.criterion_id = labelled.criterion_id
        and criteria.content_hash = labelled.criterion_hash
where responses.benchmark = $benchmark
    and responses.dataset_revision = $revision
    and list_contains($response_ids::varchar[], responses.response_id)
    and criteria.weight is not null
    and points.breakdown = $breakdown
    and points.label = $label
    and ($breakdown = 'all' or coalesce(criteria.category, '(none)') = $label)
qualify count(judged.judging_id) over (partition by responses.response_id) > 0
order by responses.response_id, criteria.position
