-- name: judge_breakdowns
-- Agreement of each pair of graders under one label: of a criterion, its task, its
-- model, or the response.
with pairs as (
    select benchmark, dataset_revision, grader_a, grader_b,
        row_number() over (
            order by 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b
        ) as pair_rank
    from judge_agreement
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and not is_member
)

select shown.* exclude (benchmark, dataset_revision) replace (
        replace(label, ' letters and digits', '') as label
    ),
    pair_rank,
    grader_a || ' - ' || grader_b as pair,
    n < 50 as is_few
from breakdown_agreement as shown
inner join pairs using (benchmark, dataset_revision, grader_a, grader_b)
order by pair_rank, breakdown, label;

-- name: judge_confusion
-- Pairs of decisions of two graders on the same criteria, over all vintages.
with counted as (
    select grader_a, grader_b,
        'imported' in (kind_a, kind_b) as has_people,
        value_a, value_b,
        sum(n)::bigint as n,
        sum(sum(n)) over (partition by grader_a, grader_b) as n_of_pair
    from intermediate.agreement_counts
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = 'all'
        and not is_member
    group by grader_a, grader_b, has_people, value_a, value_b
)

select grader_a, grader_b,
    grader_a || ' (rows) and ' || grader_b || ' (columns)' as pair,
    case value_a when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_a,
    case value_b when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_b,
    n,
    n / n_of_pair as share
from counted
order by not has_people, n_of_pair desc, grader_a, grader_b, value_a desc, value_b desc;

-- name: judge_drift
-- Each judge's decisions on its control set by night, compared with its first
-- verdicts and the expected agreement.
select
    coalesce(judge_config, judge)
    || if(
        count(distinct set_id) over (partition by coalesce(judge_config, judge)) > 1,
        ' set ' || set_id[:8],
        ''
    ) as grader,
    night, agreement, centre, lower_limit, min_agreement, is_out_of_control, cause, kappa,
    met_share, first_met_share,
    met_share - first_met_share as met_change,
    n_members, n_decided, n_failed, n_lost
from judge_drift
left join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
where judge_drift.benchmark = $benchmark and judge_drift.dataset_revision = $dataset_revision
order by grader, night;

-- name: judge_failures
-- Results of the judges' calls on the responses of the shown models: decisions,
-- and failures by cause.
select
    judge_config as grader,
    status,
    bool_or(value is null) as is_failure,
    count(*) as n,
    count(*) / sum(count(*)) over (partition by judge_config) as share,
    (sum(count(*)) over (partition by judge_config))::bigint as n_verdicts,
    sum(attempts)::bigint as attempts
from scoped_graded_verdicts
semi join shown_tasks using (task_id)
semi join shown_responses using (response_id)
-- Another reading of a verdict is not a call.
where grading <> 'ternary_as_binary'
group by judge_config, status
order by grader <> $main, grader, is_failure, n desc, status;

-- name: judge_favours
-- Bias of each grader by model: its score of a model's responses minus the others'
-- score of the same responses, and the distance of that difference from the
-- grader's average over the tasks of all models.
with compared as (
    select
        shown_responses.entry as model,
        graders.grader, scores.task_id, scores.value,
        round((fsum(scores.value) over same - scores.value) / (count(*) over same - 1), 12)
            as others_value
    from scores
    semi join shown_tasks using (task_id)
    inner join shown_responses using (response_id)
    inner join graders
        on graders.grader_id = hash(
            scores.judge, scores.judge_config_hash, scores.template_hash, scores.grading,
            scores.judge_trial
        )
    where scores.benchmark = $benchmark
        and scores.dataset_revision = $dataset_revision
        and scores.score_name = $score
        and scores.is_complete
        and graders.judge_trial = 1
    -- Ternary gradings are compared with ternary ones, binary with binary.
    window same as (partition by scores.response_id, scores.grading = 'ternary')
    qualify count(*) over same > 1
),

by_task as (
    select grader, model, task_id,
        count(*) as n_responses,
        exact_avg(value) as own_value,
        exact_avg(others_value) as others_value
    from compared
    group by grader, model, task_id
),

by_model as (
    select grader, model,
        round(exact_avg(own_value), 12) as own_mean,
        round(exact_avg(others_value), 12) as others_mean,
        own_mean - others_mean as difference,
        count(*) as n_tasks,
        sum(n_responses)::bigint as n_responses
    from by_task
    group by grader, model
)

select grader, model, own_mean, others_mean, difference,
    -- A single model cannot be favoured. The average is weighted by tasks, so that
    -- a model with a single task has little effect.
    if(
        count(*) over of_grader > 1,
        round(
            difference
            - fsum(difference * n_tasks) over of_grader / sum(n_tasks) over of_grader,
            12
        ),
        null
    ) as favour,
    n_tasks,
    n_tasks < 50 as is_small,
    n_responses
from by_model
window of_grader as (partition by grader)
order by grader, favour desc nulls last, model;

-- name: judge_agreement
-- Agreement of each pair of graders: people first, and last the majorities with
-- their own voters, which agree by construction.
select * replace (nullif(label, '') as label), grader_a || ' - ' || grader_b as pair
from presented_agreement_figures
where breakdown = $breakdown
    and ($graders = [] or list_has_any($graders::varchar[], [grader_a, grader_b]))
order by label, is_member, 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b;

-- name: variant_agreement
-- Agreement with people for each wording of the rubric and each grading. Sums in
-- another order differ in the last digits, so means are rounded.
select * replace (
        replace(grading, '_', ' ') as grading,
        round(macro_f1_task_mean, 12) as macro_f1_task_mean,
        round(macro_f1_task_mean_absent_as_0, 12) as macro_f1_task_mean_absent_as_0
    ),
    n < 50 as is_few,
    grader || ' - ' || reference as pair,
    rubric || ', ' || replace(grading, '_', ' ') as variant
from presented_variant_agreement
where breakdown = 'all'
order by rubric <> 'original', rubric, grading, grader, reference;

-- name: judge_reliability
-- Agreement of all graders, of a judge's repetitions, and of a majority's members.
select * replace (nullif(label, '') as label)
from presented_grader_reliability
where breakdown = $breakdown
order by label, grader_set;

-- name: neighbour_effects
-- Changes of verdicts by other criteria in a call. The judge need not have any
-- other verdicts: then its label is its name.
select
    coalesce(judge_config, judge) as judge_config,
    judge, judge_config_hash, template_hash, grading, judge_trial, arrangement, compared_with,
    measure_of, breakdown, label, n, n_tasks, before, after, change, change_ci_low, change_ci_high,
    is_small
from neighbour_effects
left join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
where neighbour_effects.benchmark = $benchmark
    and neighbour_effects.dataset_revision = $dataset_revision
    and len($judges::varchar[]) = 0 or list_contains($judges::varchar[], judge)
order by judge, measure_of <> 'met', measure_of, compared_with, arrangement, breakdown, label;
