-- One row: a criterion of an answer that two judges were asked about, with what
-- the cheap one said first and second and what the strong one said; NULL where
-- that failed. What counts for the answer's primary score stands beside it.
with graded as (
    select response_id, benchmark, dataset_revision, task_id, criterion_id, criterion_hash, judge,
        judge_config_hash, template_hash, grading, judge_trial, confidence, value
    from intermediate.graded_verdicts
    where benchmark = $benchmark
        and dataset_revision = $revision
        and judge in ($cheap, $strong)
        and grading = $grading
),

first_verdicts as (
    select * from graded
    where judge = $cheap
        and judge_config_hash = $cheap_config
        and template_hash = $cheap_template
        and judge_trial = $first_trial
),

second_verdicts as (
    select * from graded
    where judge = $cheap
        and judge_config_hash = $cheap_config
        and template_hash = $cheap_template
        and judge_trial = $second_trial
),

strong_verdicts as (
    select * from graded
    where judge = $strong
        and judge_config_hash = $strong_config
        and template_hash = $strong_template
        and judge_trial = $strong_trial
),

primary_scores as (
    select bounds.task_id, bounds.offset_points, bounds.denominator, bounds.n_wanted
    from intermediate.score_bounds as bounds
    inner join score_definitions as definitions using (benchmark, score_name)
    where bounds.benchmark = $benchmark
        and bounds.dataset_revision = $revision
        and bounds.breakdown = 'all'
        and definitions.is_primary
)

select responses.response_id, responses.task_id, responses.model, responses.vintage,
    criteria.criterion_id, criteria.weight,
    coalesce(criteria.category, '(none)') as category,
    first_verdicts.value as first_value,
    first_verdicts.confidence,
    second_verdicts.criterion_id is not null as has_second,
    second_verdicts.value as second_value,
    strong_verdicts.value as strong_value,
    coalesce(primary_scores.offset_points, 0) as offset_points,
    primary_scores.denominator,
    coalesce(primary_scores.n_wanted, 0) as n_wanted
from first_verdicts
inner join strong_verdicts using (response_id, criterion_id, criterion_hash)
left join second_verdicts using (response_id, criterion_id, criterion_hash)
inner join responses using (response_id)
inner join criteria
    on responses.benchmark = criteria.benchmark
        and responses.dataset_revision = criteria.dataset_revision
        and responses.task_id = criteria.task_id
        and first_verdicts.criterion_id = criteria.criterion_id
        and first_verdicts.criterion_hash = criteria.content_hash
inner join tasks
    on responses.benchmark = tasks.benchmark
        and responses.dataset_revision = tasks.dataset_revision
        and responses.task_id = tasks.task_id
left join primary_scores on responses.task_id = primary_scores.task_id
where tasks.is_admitted
    and (len($splits::varchar[]) = 0 or list_has_any(tasks.splits, $splits::varchar[]))
order by responses.task_id, responses.response_id, criteria.position
