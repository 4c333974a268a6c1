-- name: current_runs
-- One row: a model run of the old judge, in the current vintage of a model.
select distinct model_run_id
from intermediate.current_vintages
where is_latest
    and judging_id = $judging_id::ubigint
    and benchmark = $benchmark
    and dataset_revision = $dataset_revision;

-- name: scored
-- One row: a task that the old judge has scored in a current vintage.
--
-- with: queries/succession/current_runs
select benchmark, dataset_revision, task_id, model_run_id, denominator, n_trials_complete,
    complete_trials
from intermediate.task_values
semi join current_runs using (model_run_id)
where breakdown = 'all'
    and score_name = $score
    and value is not null
    and list_contains($tasks, task_id);

-- name: frame
-- One row: a criterion of a task that the old judge has scored in a current vintage, with its
-- stratum, the size of what it contributes to a task's score, and the number of verdicts on it.
--
-- with: queries/succession/scored
select
    task_id,
    criterion_id,
    content_hash as criterion_hash,
    if(weight > 0, 'positive', 'negative') || ' ' || coalesce(category, '(none)') as stratum,
    max(abs(weight) / denominator) as size,
    sum(n_trials_complete)::bigint as n_verdicts
from scored
inner join criteria using (benchmark, dataset_revision, task_id)
group by all
order by task_id, criterion_id;

-- name: sampled_runs
-- One row: a model run in a succession, as text: its vintage, configuration and model.
--
-- with: queries/succession/current_runs
select vintage || ' ' || model_config_hash || ' ' || model as sampled_run
from intermediate.model_runs
semi join current_runs using (model_run_id)
order by sampled_run;

-- name: old_judge_configs
-- One row: a configuration of the judge that is succeeded: of the first judge trial, and of
-- those the one that has scored most tasks, first.
select judging_id, judge, judge_config_hash, template_hash, grading, judge_trial
from judge_configurations
inner join intermediate.judge_configs
    using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and judge = $old
    and grading <> 'ternary_as_binary'
order by judge_trial, n_tasks desc, last_verdict_at desc, judge_config_hash, template_hash;

-- name: missing
-- One row: a response that lacks verdicts of the new judge on drawn criteria, with the numbers of
-- them and of their calls. The old judge has scored it.
--
-- with: queries/succession/scored, queries/run/cut_rubrics, queries/run/done
with drawn as (
    select
        unnest($drawn_tasks::varchar[]) as task_id,
        unnest($drawn_criteria::varchar[]) as criterion_id
),

scored_responses as (
    select response_id, model, benchmark, dataset_revision, task_id
    from scored
    inner join intermediate.wanted_responses as wanted
        using (model_run_id, benchmark, dataset_revision, task_id)
    inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision)
    where list_contains(complete_trials, wanted.trial)
)

select response_id, model, task_id,
    count(*) as n_criteria,
    count(distinct coalesce(call_index, position)) as n_calls
from scored_responses
inner join cut_rubrics using (benchmark, dataset_revision, task_id)
inner join drawn using (task_id, criterion_id)
anti join done using (response_id, criterion_id, criterion_hash, piece_hash)
group by all
order by task_id, response_id;

-- name: latest
-- One row: the latest succession of two judges by their names, or of the two that are named.
select *, judge || ' → ' || new_judge as succession
from intermediate.latest_successions
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and ($old is null or judge = $old)
    and ($new is null or new_judge = $new)
qualify row_number() over (
    partition by judge, new_judge order by created_at desc, succession_id
) = 1
order by judge, new_judge, succession_id;

-- name: succession
-- One row: the succession that the parameter names, if it is the latest of its judges.
from intermediate.latest_successions where succession_id = $succession_id;

-- name: runs_of_succession
-- One row: a model run whose responses the succession sampled.
--
-- with: queries/succession/succession
select model_run_id, judging_id
from intermediate.model_runs
inner join succession using (benchmark, dataset_revision, judging_id)
where list_contains(sampled_runs, vintage || ' ' || model_config_hash || ' ' || model);

-- name: figure_tasks
-- One row: the score of a task of the sampled population by the old judge, in a model run on a
-- split.
--
-- with: queries/succession/runs_of_succession
with figures as (
    select mean_scores.*
    from intermediate.mean_scores
    semi join runs_of_succession using (model_run_id)
    where breakdown = 'all' and is_primary and not is_expected and not is_own_hard
)

select
    figures.split,
    figures.model,
    figures.vintage,
    figures.mean_floor,
    figure_id,
    model_run_id,
    figure_values.task_id,
    dense_rank() over (partition by figure_id order by figure_values.task_id) - 1 as task,
    offset_points / denominator as known_offset,
    weights.positive / denominator as positive,
    weights.negative / denominator as negative,
    denominator,
    complete_trials,
    len(complete_trials) * weights.n_wanted as n_verdicts,
    value as judged
from figures
inner join intermediate.figure_values using (figure_id, model_run_id)
inner join intermediate.rubric_weights as weights using (label_key)
where figure_values.task_id in (select unnest(sampled_tasks) from succession)
order by figures.split, figures.model, figures.vintage, task;

-- name: beside
-- One row: a verdict of the old judge on a drawn criterion, beside the new judge's (NULL if it
-- failed or is missing).
--
-- with: queries/succession/runs_of_succession
with old_verdicts as (
    from intermediate.current_verdicts
    semi join succession using (judging_id)
    where value is not null
),

new_verdicts as (
    select response_id, criterion_id, criterion_hash,
        value as new_value,
        cost_usd
    from intermediate.current_verdicts
    semi join succession on current_verdicts.judging_id = succession.successor_id
)

select
    wanted.model_run_id,
    wanted.trial,
    old_verdicts.task_id,
    old_verdicts.criterion_id,
    old_verdicts.weight,
    old_verdicts.category,
    old_verdicts.severity,
    draws.probability,
    old_verdicts.value as old_value,
    new_verdicts.new_value,
    new_verdicts.cost_usd
from (from succession_draws semi join succession using (succession_id)) as draws
inner join old_verdicts
    using (benchmark, dataset_revision, task_id, criterion_id, criterion_hash)
inner join (
    from intermediate.wanted_responses semi join runs_of_succession using (model_run_id)
) as wanted using (response_id, judging_id)
left join new_verdicts using (response_id, criterion_id, criterion_hash);

-- name: labels
-- One row: a drawn criterion in a model's figure; values are means over the trials. An undecided
-- verdict of the new judge is halfway between the possible ones.
--
-- with: queries/succession/figure_tasks, queries/succession/beside
with numbered as (
    select *, dense_rank() over (order by task_id, criterion_id) - 1 as criterion
    from beside
)

select
    figure_id,
    figure_tasks.task,
    criterion,
    weight / denominator as contribution,
    avg(old_value) as old_value,
    avg(coalesce(new_value, 0.5)) as new_value,
    avg((new_value is null)::integer) as undecided_share,
    1 / probability as factor,
    count(*) as n_verdicts,
    count(*) filter (new_value is null) as n_undecided,
    avg(cost_usd) as mean_usd
from figure_tasks
inner join numbered using (model_run_id, task_id)
where list_contains(complete_trials, trial)
group by all
order by figure_id, criterion;

-- name: agreement
-- One row: the criteria under a label, with how often the two judges agree on them; each drawn
-- verdict stands for 1 / probability verdicts.
--
-- with: queries/succession/beside
with labelled as (
    select
        unnest(['all', 'weight', 'severity', 'category']) as breakdown,
        unnest(['', if(weight > 0, 'positive', 'negative'), severity, category]) as label,
        old_value,
        new_value,
        1 / probability as factor
    from beside
    where new_value is not null
),

shares as (
    select breakdown, label,
        count(*) as n_verdicts,
        sum(factor) as total,
        sum(factor) filter (new_value < old_value) / total as lower_share,
        sum(factor) filter (new_value > old_value) / total as higher_share,
        -- How often they would agree by chance, over the possible values.
        list_sum([
            coalesce(sum(factor) filter (old_value = 0) * sum(factor) filter (new_value = 0), 0),
            coalesce(
                sum(factor) filter (old_value = 0.5) * sum(factor) filter (new_value = 0.5), 0
            ),
            coalesce(sum(factor) filter (old_value = 1) * sum(factor) filter (new_value = 1), 0)
        ]) / total ** 2 as chance
    from labelled
    group by breakdown, label
)

select breakdown, label, n_verdicts,
    coalesce(lower_share, 0) as lower_share,
    coalesce(higher_share, 0) as higher_share,
    1 - coalesce(lower_share, 0) - coalesce(higher_share, 0) as agreement,
    (agreement - chance) / nullif(1 - chance, 0) as kappa
from shares
order by list_position(['all', 'weight', 'severity', 'category'], breakdown), label;
