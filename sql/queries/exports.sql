-- name: inspect_model_runs
-- One row: a configured model, sampled in one vintage, under one judge configuration, that
-- has a response to one of some tasks. Binary readings of ternary verdicts are
-- left out. `model_name` and `judge_name` are LiteLLM's names of model and judge in
-- the runs that called them; NULL if no stored run names them.
--
-- with: revision/revision_responses, revision/revision_verdicts
with endpoints as (
    select run_id, kind,
        -- The columns `label` and `name`.
        unnest(
            from_json(json_extract(config, path), '[{"label": "varchar", "name": "varchar"}]'),
            max_depth := 2
        )
    from runs
    cross join (values ('model', '$.models'), ('judge', '$.judges')) as kinds (kind, path)
),

model_names as (
    select model, model_config_hash, vintage,
        arg_max(endpoints.name, responses.created_at) as model_name
    from revision_responses as responses
    inner join endpoints
        on responses.run_id = endpoints.run_id and responses.model = endpoints.label
    where endpoints.kind = 'model'
        and responses.source <> 'imported'
    group by all
),

judge_names as (
    select judge, judge_config_hash, arg_max(endpoints.name, verdicts.created_at) as judge_name
    from revision_verdicts as verdicts
    inner join endpoints
        on verdicts.run_id = endpoints.run_id and verdicts.judge = endpoints.label
    where endpoints.kind = 'judge'
        and verdicts.source <> 'imported'
    group by all
)

select model_runs.*, rubric, is_imported, may_hide_failures, model_name, judge_name
from intermediate.current_model_runs as model_runs
semi join (
    from intermediate.wanted_responses where list_contains($task_ids, task_id)
) as wanted using (model_run_id)
inner join (select judging_id, rubric, is_imported from intermediate.judge_configs)
    using (judging_id)
left join intermediate.hiding_runs using (model_run_id)
left join model_names using (model, model_config_hash, vintage)
left join judge_names using (judge, judge_config_hash)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and grading <> 'ternary_as_binary'
    and is_among($models, model)
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
    and (
        $vintage = 'all' or vintage = $vintage
        or ($vintage is null and is_latest)
    )
order by model, model_config_hash, vintage, judge, judge_config_hash, template_hash, grading,
    judge_trial;

-- name: inspect_responses
-- One row: a response of a model run to one of some tasks, failed or not, with
-- every criterion, decided or not, in the order of the rubric, and with its scores,
-- the main one first.
with criterion as (
    select judged.response_id, judged.criterion_id, criteria.title, criteria.category,
        criteria.severity, criteria.weight, judged.status, judged.value, verdicts.explanation,
        verdicts.error, verdicts.may_hide_failures, verdicts.prompt_tokens, verdicts.cached_tokens,
        verdicts.completion_tokens, verdicts.cost_usd, verdicts.created_at, criteria.position
    from intermediate.judged_criteria as judged
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    left join verdicts using (verdict_id)
    where judged.model_run_id = $model_run and list_contains($task_ids, judged.task_id)
),

rubric as (
    -- The name of a table stands for its whole row.
    select response_id, list(criterion order by position) as criteria from criterion group by all
),

scored as (
    select response_id,
        list(response_scores order by score_name <> $primary, score_name) as scores
    from intermediate.response_scores
    where model_run_id = $model_run and breakdown = 'all'
    group by all
)

select responses.*, criteria, scores, tasks.field, tasks.topic, tasks.expert, tasks.splits,
    tasks.decision_types, tasks.economic_pathways
from intermediate.wanted_responses as wanted
inner join tasks using (benchmark, dataset_revision, task_id)
inner join responses using (response_id)
left join rubric using (response_id)
left join scored using (response_id)
where model_run_id = $model_run and list_contains($task_ids, wanted.task_id)
order by responses.task_id, responses.trial, responses.response_id;

-- name: inspect_results
-- One row: a score of a model run on a split, as on the leaderboard, with its
-- standard error over tasks.
with spread as (
    select split, score_name,
        -- Rounded, because the last digits depend on the order of threads.
        round(stddev_samp(value) / sqrt(count(value)), 12) as standard_error
    from intermediate.task_values
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    where model_run_id = $model_run
        and breakdown = 'all'
        and not is_own_hard
        and is_among($splits, split)
    group by all
)

select split, score_name, is_primary, mean_score, standard_error, ci_low, ci_high, raw_mean_score,
    coverage, n_tasks, n_tasks_wanted, is_complete, mean_lower, mean_upper
from intermediate.leaderboard_rows
inner join spread using (split, score_name)
where model_run_id = $model_run and not is_own_hard and breakdown = 'all'
order by is_primary desc, score_name, split;

-- name: labelling_responses
-- One row: a usable response that people can label. It must be unique by task,
-- model, trial and vintage, so that an imported verdict can name it.
--
-- with: revision/revision_responses
select response_id, task_id, model, trial, vintage
from revision_responses
where status = 'ok'
    and list_contains($task_ids, task_id)
    and ($models is null or list_contains($models, model))
    and ($trials is null or list_contains($trials, trial))
qualify count(*) over (partition by task_id, model, trial, vintage) = 1
order by response_id;

-- name: labelling_rows
-- One row: a criterion of one of some responses, in their order.
--
-- with: revision/revision_responses
select response_id, task_id as task, model, trial, vintage, criterion_id as criterion, field, topic,
    text as response, title
from revision_responses
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id)
where list_contains($response_ids, response_id)
order by list_position($response_ids, response_id), criteria.position;

-- name: review_population
-- One row: a criterion that a sheet for reviewers can sample, task by task in
-- the order of the rubrics.
--
-- with: revision/revision_criteria
select task_id as task, criterion_id as criterion, criteria.content_hash as criterion_hash, title,
    category, severity, weight, field, topic
from revision_criteria as criteria
inner join tasks using (benchmark, dataset_revision, task_id)
where list_contains($task_ids, task_id)
order by list_position($task_ids, task_id), criteria.position;

-- name: figures_to_correct
-- One row: a response that counts in a figure of a judge configuration, with a flag:
-- true if an earlier sheet with labels covers it.
with covered as (
    select distinct response_id
    from intermediate.covered_responses
    where steps = $steps
        and (covered_breakdown = 'all' or (covered_breakdown, covered_label) = ($breakdown, $label))
)

select mean_scores.figure_id, mean_scores.model, mean_scores.split,
    figure_values.task_id as task,
    wanted.response_id,
    covered.response_id is not null as is_covered
from intermediate.mean_scores
inner join intermediate.figure_values using (figure_id, model_run_id)
inner join intermediate.wanted_responses as wanted using (model_run_id, task_id)
left join covered using (response_id)
where mean_scores.benchmark = $benchmark
    and mean_scores.dataset_revision = $dataset_revision
    and mean_scores.model_run_id in (
        select model_run_id
        from intermediate.wanted_responses
        where judging_id = $judging_id
            and list_contains($response_ids, response_id)
    )
    and mean_scores.score_name = $score
    and mean_scores.breakdown = $breakdown
    and mean_scores.label = $label
    and not mean_scores.is_own_hard
    and list_contains(figure_values.complete_trials, wanted.trial)
    and is_among($splits, mean_scores.split)
order by mean_scores.split, mean_scores.model, figure_id, task, wanted.response_id;

-- name: sampled_judge_configs
-- One row: a judge configuration of some responses, those with the most decided
-- verdicts first. People who label do not count as judges.
select judging_id, judge, judge_config_hash, template_hash, grading, judge_trial,
    -- The grading, where binary readings of ternary verdicts are binary.
    case when grading = 'ternary' then 'ternary' else 'binary' end as steps,
    count(*) as n_verdicts
from intermediate.graded_verdicts
where list_contains($response_ids, response_id)
    and rubric = 'original'
    and value is not null
    and (benchmark, judge) not in (select (benchmark, judge) from labellers)
    and ($judges is null or list_contains($judges, judge))
group by judging_id, judge, judge_config_hash, template_hash, grading, judge_trial
order by n_verdicts desc, grading = 'ternary_as_binary', judge_trial, judge, judging_id;

-- name: drawn_population
-- One row: a verdict that a sheet can sample, on a response with verdicts of the
-- judge.
-- worth: its contribution to the task's value if it is met.
-- is_decided: true if the judge has decided the whole response.
-- judge_value: the judge's verdict.
-- disagreement: mean squared difference of other judges' verdicts from it.
-- n_others: the number of these.
-- label_value: mean of the labels of people; NULL without any.
-- factor: the number of verdicts that its label in an earlier sheet represents.
-- density: the labelled share of the populations of earlier sheets that cover it.
--
-- with: revision/revision_responses
with judged as (
    select response_id, criterion_id, criterion_hash, judging_id, value
    from intermediate.graded_verdicts
    where judging_id = $judging_id and list_contains($response_ids, response_id)
),

others as (
    select response_id, criterion_id, criterion_hash,
        avg(pow(verdicts.value - judged.value, 2)) as disagreement,
        count(*) as n_others
    from intermediate.graded_verdicts as verdicts
    inner join judged using (response_id, criterion_id, criterion_hash)
    where verdicts.judging_id <> judged.judging_id
        and judged.value is not null
        and verdicts.value is not null
        -- Only verdicts on the same steps.
        and (verdicts.grading = 'ternary') = ($steps = 'ternary')
        and (verdicts.benchmark, verdicts.judge) not in (select (benchmark, judge) from labellers)
    group by all
),

labelled as (
    select response_id, criterion_id, criterion_hash, avg(value) as label_value
    from intermediate.imported_decisions
    where is_label and steps = $steps
    group by all
),

sampled as (
    select response_id, criterion_id, criterion_hash, factor
    from intermediate.sampled_labels
    where steps = $steps
),

covered as (
    select response_id, criterion_id, exact_sum(density) as density
    from intermediate.covered_responses as sheets
    inner join responses using (response_id)
    inner join criteria using (benchmark, dataset_revision, task_id)
    where list_contains($response_ids, response_id)
        and sheets.steps = $steps
        and (
            -- Sheets cover all verdicts or a category (`tasks.exports.label_sampling`).
            sheets.covered_breakdown = 'all'
            or coalesce(criteria.category, '(none)') = sheets.covered_label
        )
    group by all
)

select response_id,
    responses.task_id as task,
    responses.model, responses.vintage, criterion_id, criterion_hash,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity,
    criteria.weight / bounds.denominator as worth,
    points.n_decided = points.n_wanted as is_decided,
    judged.value as judge_value,
    coalesce(disagreement, 0) as disagreement,
    coalesce(n_others, 0) as n_others,
    label_value,
    coalesce(sampled.factor, 0) as factor,
    coalesce(covered.density, 0) as density
from revision_responses as responses
inner join (select *, content_hash as criterion_hash from criteria) as criteria
    using (benchmark, dataset_revision, task_id)
inner join intermediate.score_bounds as bounds using (benchmark, dataset_revision, task_id)
inner join intermediate.response_points as points using (response_id, breakdown, label)
inner join intermediate.model_runs using (model_run_id)
left join judged using (response_id, criterion_id, criterion_hash)
left join others using (response_id, criterion_id, criterion_hash)
left join labelled using (response_id, criterion_id, criterion_hash)
left join sampled using (response_id, criterion_id, criterion_hash)
left join covered using (response_id, criterion_id)
where list_contains($response_ids, response_id)
    and bounds.score_name = $score
    and breakdown = $breakdown
    and label = $label
    and model_runs.judging_id = $judging_id
    and (
        not $of_latest
        or model_run_id in (select model_run_id from intermediate.current_vintages where is_latest)
    )
    and criteria.weight is not null
    and ($breakdown = 'all' or coalesce(criteria.category, '(none)') = $label)
qualify count(judged.judging_id) over (partition by response_id) > 0
order by response_id, criteria.position;
