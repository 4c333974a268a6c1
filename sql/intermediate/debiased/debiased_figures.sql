-- One row: a figure of a leaderboard with labels, with what they are and a
-- fingerprint of all that its debiased score rests on.
--
-- Where a judging has labels on a task set, its models and categories without
-- any are here too, so that they are seen to have none.
--
-- built as: table
-- depends on: intermediate.covered_answers, intermediate.figure_labels,
--     intermediate.mean_scores, intermediate.model_runs, intermediate.task_set_members,
--     intermediate.task_values, intermediate.unsampled_labels, intermediate.wanted_responses
with labelled as (
    select figure_id,
        count(*) as n_labels,
        count(distinct task_id) as n_tasks_labelled,
        len(list_distinct(flatten(list(people)))) as n_people,
        bit_xor(
            hash(response_id, criterion_id, label_value, judge_value, factor, contribution)
        ) as labels_basis
    from intermediate.figure_labels
    group by figure_id
),

unsampled as (
    select mean_scores.figure_id,
        sum(beside.n_labels)::bigint as n_unsampled_labels,
        round(exact_sum(beside.sum_error) / sum(beside.n_labels), 12) as unsampled_mean_error
    from intermediate.unsampled_labels as beside
    inner join intermediate.task_values using (model_run_id, task_id, breakdown, label)
    inner join intermediate.task_set_members as members
        on task_values.benchmark = members.benchmark
            and task_values.dataset_revision = members.dataset_revision
            and task_values.task_id = members.task_id
    inner join intermediate.mean_scores
        on members.task_set_id = mean_scores.task_set_id
            and beside.model_run_id = mean_scores.model_run_id
            and beside.breakdown = mean_scores.breakdown
            and beside.label = mean_scores.label
            and task_values.score_name = mean_scores.score_name
    where list_contains(task_values.complete_trials, beside.trial)
    group by mean_scores.figure_id
),

of_rubrics as (
    select mean_scores.*, model_runs.ranking_id, model_runs.is_latest
    from intermediate.mean_scores
    inner join intermediate.model_runs using (model_run_id)
    where mean_scores.raw_mean_score is not null and mean_scores.breakdown in ('all', 'category')
),

with_labels as (
    select distinct of_rubrics.task_set_id, of_rubrics.ranking_id
    from of_rubrics
    left join labelled using (figure_id)
    left join unsampled using (figure_id)
    where labelled.figure_id is not null or unsampled.figure_id is not null
),

found as (
    select of_rubrics.*,
        coalesce(labelled.n_labels, 0) as n_labels,
        coalesce(labelled.n_tasks_labelled, 0) as n_tasks_labelled,
        coalesce(labelled.n_people, 0) as n_people,
        labelled.labels_basis,
        coalesce(unsampled.n_unsampled_labels, 0) as n_unsampled_labels,
        unsampled.unsampled_mean_error,
        case
            when labelled.figure_id is not null then null
            when unsampled.figure_id is null then 'no label'
            else 'no label of known probability'
        end as without_labels
    from of_rubrics
    semi join with_labels using (task_set_id, ranking_id)
    left join labelled using (figure_id)
    left join unsampled using (figure_id)
),

answers as (
    -- The responses that a figure with sampled labels rests on.
    select found.figure_id, wanted.task_id, wanted.response_id, found.breakdown, found.label,
        case when found.grading = 'ternary' then 'ternary' else 'binary' end as steps
    from found
    inner join intermediate.task_set_members as members using (task_set_id)
    inner join intermediate.task_values
        on found.model_run_id = task_values.model_run_id
            and members.task_id = task_values.task_id
            and found.breakdown = task_values.breakdown
            and found.label = task_values.label
            and found.score_name = task_values.score_name
    inner join intermediate.wanted_responses as wanted
        on task_values.model_run_id = wanted.model_run_id and task_values.task_id = wanted.task_id
    where found.n_labels > 0 and list_contains(task_values.complete_trials, wanted.trial)
),

uncovered as (
    select answers.figure_id, count(distinct answers.task_id) as n_tasks_uncovered
    from answers
    anti join intermediate.covered_answers as covered
        on answers.response_id = covered.response_id
            and answers.steps = covered.steps
            and (
                covered.covered_breakdown = 'all'
                or (
                    covered.covered_breakdown = answers.breakdown
                    and covered.covered_label = answers.label
                )
            )
    group by answers.figure_id
)

select
    found.* exclude (
        basis, labels_basis, lower_bound, upper_bound, mean_lower, mean_upper, met_share, n_judged,
        is_complete, n_tasks_full, n_tasks_annotated, mean_floor
    ),
    coalesce(uncovered.n_tasks_uncovered, 0) as n_tasks_uncovered,
    found.basis as mean_basis,
    md5(concat_ws(chr(31), found.basis, labels_basis, n_tasks_uncovered, without_labels)) as basis
from found
left join uncovered using (figure_id)
