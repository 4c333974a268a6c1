-- name: judge_breakdowns
-- Agreement of each pair of graders under one label: of a criterion, its task, its
-- model, or the response.
with pairs as (
    select benchmark, dataset_revision, grader_a, grader_b,
        row_number() over (
            order by 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b
        ) as pair_rank
    from revision_judge_agreement
    where not is_member
)

select pair_rank, grader_a, grader_b, breakdown,
    replace(label, ' letters and digits', '') as label,
    kappa, kappa_ci_low, kappa_ci_high, macro_f1, macro_f1_ci_low, macro_f1_ci_high, agreement,
    agreement_ci_low, agreement_ci_high, met_share_a, met_share_b, n, n_tasks,
    n < 50 as is_few
from breakdown_agreement
inner join pairs using (benchmark, dataset_revision, grader_a, grader_b)
order by pair_rank, breakdown, label;

-- name: judge_confusion
-- Pairs of decisions of two graders on the same criteria, over all vintages.
with counted as (
    select grader_a, grader_b, kind_a, kind_b, value_a, value_b, sum(n)::bigint as n
    from revision_agreement_counts
    where breakdown = 'all' and not is_member
    group by all
),

pairs as (
    select grader_a, grader_b,
        'imported' in (kind_a, kind_b) as has_people,
        sum(n)::bigint as n_of_pair
    from counted
    group by all
),

decisions as (
    select distinct grader_a, grader_b, unnest([value_a, value_b]) as value
    from counted
),

-- Pairs that never occur have the count 0.
cells as (
    select pairs.*, one.value as value_a, other.value as value_b
    from pairs
    inner join decisions as one using (grader_a, grader_b)
    inner join decisions as other using (grader_a, grader_b)
)

select cells.grader_a, cells.grader_b,
    case value_a when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_a,
    case value_b when 1 then 'met' when 0 then 'not met' else 'partly met' end as says_b,
    coalesce(counted.n, 0) as n,
    coalesce(counted.n, 0) / cells.n_of_pair as share
from cells
left join counted using (grader_a, grader_b, value_a, value_b)
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
from revision_judge_drift
left join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
order by grader, night;

-- name: judge_failures
-- Results of the judges' calls on the responses of the shown models: decisions,
-- and failures by cause.
with counted as (
    select
        judge_config as grader,
        status,
        count(*) as n,
        count(*) filter (value is null) as n_failed,
        sum(attempts)::bigint as attempts
    from revision_graded_verdicts
    semi join shown_tasks using (task_id)
    semi join shown_responses using (response_id)
    inner join shown_judge_configs
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    -- Another reading of a verdict is not a call.
    where grading <> 'ternary_as_binary'
    group by judge_config, status
)

select grader, status,
    n_failed > 0 as is_failure,
    n,
    n / sum(n) over (partition by grader) as share,
    sum(n) over (partition by grader)::bigint as n_verdicts,
    attempts
from counted
order by grader <> $main, grader, is_failure, n desc, status;

-- name: judge_favours
-- Bias of each grader by model: its score of a model's responses minus the others'
-- score of the same responses, and the distance of that difference from the
-- grader's average over the tasks of all models.
with marked as (
    select
        shown_responses.entry as model,
        graders.grader, scores.response_id, scores.task_id,
        -- Ternary gradings are compared with ternary ones, binary with binary.
        scores.grading = 'ternary' as is_ternary,
        scores.value
    from revision_scores as scores
    semi join shown_tasks using (task_id)
    inner join shown_responses using (response_id)
    inner join graders
        on graders.grader_id = hash(
            scores.judge, scores.judge_config_hash, scores.template_hash, scores.grading,
            scores.judge_trial
        )
    where scores.score_name = $score and scores.is_complete and graders.judge_trial = 1
),

-- Sums are ordered, so that the same data gives the same last digits.
totals as (
    select response_id, is_ternary, sum(value order by value) as total, count(*) as n_graders
    from marked
    group by response_id, is_ternary
    having count(*) > 1
),

by_task as (
    select grader, model, task_id,
        count(*) as n_responses,
        avg(value order by response_id) as own_value,
        avg((total - value) / (n_graders - 1) order by response_id) as others_value
    from marked
    inner join totals using (response_id, is_ternary)
    group by grader, model, task_id
),

by_model as (
    select grader, model,
        avg(own_value order by task_id) as own_mean,
        avg(others_value order by task_id) as others_mean,
        own_mean - others_mean as difference,
        count(*) as n_tasks,
        sum(n_responses)::bigint as n_responses
    from by_task
    group by grader, model
),

by_grader as (
    select grader,
        count(*) as n_models,
        -- Weighted by tasks, so that a model with a single task has little effect.
        sum(difference * n_tasks order by model) / sum(n_tasks) as mean_difference
    from by_model
    group by grader
)

select grader, model, own_mean, others_mean, difference,
    -- A single model cannot be favoured.
    if(n_models > 1, difference - mean_difference, null) as favour,
    n_tasks,
    n_tasks < 50 as is_small,
    n_responses
from by_model
inner join by_grader using (grader)
order by grader, favour desc nulls last, model;

-- name: judge_agreement
-- Agreement of each pair of graders: people first, and last the majorities with
-- their own voters, which agree by construction.
select * replace (nullif(label, '') as label)
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
    n < 50 as is_few
from presented_variant_agreement
where breakdown = 'all'
order by rubric <> 'original', rubric, grading, grader, reference;

-- name: judge_reliability
-- Agreement of all graders, of a judge's repetitions, and of a majority's members.
select * replace (nullif(label, '') as label)
from presented_grader_reliability
where breakdown = $breakdown
order by label, grader_set;
