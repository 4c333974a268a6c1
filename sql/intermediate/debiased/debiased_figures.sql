-- One row: a figure of a leaderboard with labels, with counts of the labels and a
-- fingerprint of all inputs of its debiased score.
--
-- If a judge configuration has labels on a task set, its models and categories
-- without labels also have rows, which show that they have none.
--
-- built as: table
-- depends on: intermediate.covered_responses, intermediate.current_vintages,
--     intermediate.figure_labels, intermediate.figure_values, intermediate.mean_scores,
--     intermediate.model_runs, intermediate.wanted_responses
with labelled as (
    select figure_id,
        count(factor) as n_labels,
        count(distinct task_id) filter (factor is not null) as n_tasks_labelled,
        len(list_distinct(flatten(list(people)))) as n_people,
        bit_xor(
            hash(response_id, criterion_id, label_value, judge_value, factor, contribution)
        ) filter (factor is not null) as labels_basis,
        count(*) - n_labels as n_unsampled_labels,
        round(exact_avg(case when factor is null then label_value - judge_value end), 12)
            as unsampled_mean_error
    from intermediate.figure_labels
    group by figure_id
),

counted as (
    select mean_scores.*, model_runs.ranking_id, current_vintages.is_latest,
        coalesce(labelled.n_labels, 0) as n_labels,
        coalesce(labelled.n_tasks_labelled, 0) as n_tasks_labelled,
        coalesce(labelled.n_people, 0) as n_people,
        coalesce(labelled.n_unsampled_labels, 0) as n_unsampled_labels,
        labels_basis, unsampled_mean_error,
        case
            when labelled.n_labels > 0 then null
            when labelled.figure_id is null then 'no label'
            else 'no label of known probability'
        end as without_labels
    from intermediate.mean_scores
    inner join intermediate.model_runs using (model_run_id)
    inner join intermediate.current_vintages using (task_set_id, model_run_id)
    left join labelled using (figure_id)
    where raw_mean_score is not null and breakdown in ('all', 'category') and not is_expected
    qualify count(labelled.figure_id) over (partition by task_set_id, ranking_id) > 0
),

uncovered as (
    -- Tasks with a response that no sheet covers, of figures with sampled labels.
    select counted.figure_id, count(distinct figure_values.task_id) as n_tasks_uncovered
    from counted
    inner join intermediate.figure_values using (figure_id, model_run_id)
    inner join intermediate.wanted_responses as wanted using (model_run_id, task_id)
    anti join intermediate.covered_responses as covered
        on wanted.response_id = covered.response_id
            and (counted.grading = 'ternary') = (covered.steps = 'ternary')
            and (
                covered_breakdown = 'all'
                or (covered_breakdown, covered_label) = (counted.breakdown, counted.label)
            )
    where counted.n_labels > 0 and list_contains(figure_values.complete_trials, wanted.trial)
    group by counted.figure_id
)

select
    task_set_id,
    model_run_id,
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    score_name,
    is_primary,
    n_tasks,
    n_tasks_wanted,
    n_trials,
    raw_mean_score,
    coverage,
    figure_id,
    ranking_id,
    is_latest,
    n_labels,
    n_tasks_labelled,
    n_people,
    n_unsampled_labels,
    unsampled_mean_error,
    without_labels,
    coalesce(uncovered.n_tasks_uncovered, 0) as n_tasks_uncovered,
    counted.basis as mean_basis,
    md5(concat_ws(chr(31), counted.basis, labels_basis, n_tasks_uncovered, without_labels)) as basis
from counted
left join uncovered using (figure_id)
