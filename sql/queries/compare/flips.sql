-- What did two model runs decide on each criterion, in each trial that is
-- complete for the task and as the mean over these, and what is the second's
-- decision worth beside the first's? Where no trial is complete the task counts
-- for neither; what was decided is then the mean over what is. A criterion is
-- the same in two revisions when its content is.
with sides as (
    select model_runs.*, side from intermediate.model_runs
    inner join (values (1, $first::ubigint), (2, $second::ubigint))
        as chosen (side, model_run_id) using (model_run_id)
),

answers as (
    select responses.response_id, sides.* exclude (benchmark, dataset_revision, model, vintage)
    from responses
    inner join sides using (benchmark, dataset_revision, model, model_config_hash, vintage)
    where list_contains(sides.trials, responses.trial)
),

rubrics as (
    select criteria.*,
        -- A rubric may ask for the same twice.
        row_number() over (
            partition by benchmark, dataset_revision, task_id, content_hash
            order by position
        ) as occurrence
    from criteria
    where weight is not null
),

decisions as (
    select answers.side, verdicts.task_id, verdicts.criterion_id,
        verdicts.criterion_hash as content_hash,
        coalesce(
            list(verdicts.value order by verdicts.trial) filter (
                response_points.n_decided = response_points.n_wanted
            ),
            list(verdicts.value order by verdicts.trial) filter (verdicts.value is not null)
        ) as by_trial,
        coalesce(
            list(verdicts.explanation order by verdicts.trial) filter (
                response_points.n_decided = response_points.n_wanted
                and verdicts.explanation is not null
            ),
            []
        ) as explanations
    from intermediate.graded_verdicts as verdicts
    inner join answers
        using (response_id, judge, judge_config_hash, template_hash, grading, judge_trial)
    inner join intermediate.response_points
        on answers.model_run_id = response_points.model_run_id
            and answers.response_id = response_points.response_id
            and response_points.breakdown = 'all'
    group by all
),

cells as (
    select sides.side, rubrics.task_id, rubrics.content_hash, rubrics.occurrence,
        rubrics.criterion_id, rubrics.title,
        coalesce(rubrics.category, '(none)') as category,
        rubrics.weight,
        rubrics.weight / score_bounds.denominator as worth,
        decisions.by_trial, decisions.explanations,
        list_avg(decisions.by_trial) as value
    from sides
    inner join rubrics using (benchmark, dataset_revision)
    inner join intermediate.score_bounds
        on rubrics.benchmark = score_bounds.benchmark
            and rubrics.dataset_revision = score_bounds.dataset_revision
            and rubrics.task_id = score_bounds.task_id
            and score_bounds.breakdown = 'all'
            and score_bounds.score_name = $score
    left join decisions
        on sides.side = decisions.side
            and rubrics.task_id = decisions.task_id
            and rubrics.criterion_id = decisions.criterion_id
            and rubrics.content_hash = decisions.content_hash
)

select task_id,
    coalesce(second.criterion_id, first.criterion_id) as criterion_id,
    coalesce(second.title, first.title) as title,
    coalesce(second.category, first.category) as category,
    coalesce(second.weight, first.weight) as weight,
    first.value as first_value,
    second.value as second_value,
    first.by_trial as first_by_trial,
    second.by_trial as second_by_trial,
    first.explanations as first_explanations,
    second.explanations as second_explanations,
    second.worth * (second.value - first.value) as effect,
    first.task_id is not null and second.task_id is not null as is_in_both
from (select * from cells where side = 1) as first
full join (select * from cells where side = 2) as second using (task_id, content_hash, occurrence)
order by effect, task_id, criterion_id
