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

select
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    is_member,
    breakdown,
    -- Labels of length, shortened for a chart.
    replace(label, ' letters and digits', '') as label,
    n,
    n_tasks,
    met_share_a,
    met_share_b,
    macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    agreement,
    agreement_ci_low,
    agreement_ci_high,
    pair_rank,
    grader_a || ' - ' || grader_b as pair,
    n < 50 as is_few
from breakdown_agreement
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

select
    grader_a,
    grader_b,
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
--
-- with: revision/revision_judge_drift
select
    coalesce(judge_config, judge)
    || if(
        count(distinct set_id) over (partition by coalesce(judge_config, judge)) > 1,
        ' set ' || set_id[:8],
        ''
    ) as grader,
    night,
    agreement,
    centre,
    lower_limit,
    min_agreement,
    joint_limit,
    is_out_of_control,
    cause,
    kappa,
    met_share,
    first_met_share,
    met_share - first_met_share as met_change,
    n_labelled,
    first_people_agreement,
    people_agreement,
    labels_represent,
    n_members,
    n_decided,
    n_failed,
    n_lost
from revision_judge_drift
natural left join $shown_judge_configs
order by grader, night;

-- name: judge_failures
-- Results of the judges' calls on the responses of the shown models: decisions,
-- and failures by cause.
--
-- with: revision/revision_graded_verdicts, figures/shared/shown_responses,
--     figures/shared/shown_tasks
select
    judge_config as grader,
    status,
    bool_or(value is null) as is_failure,
    count(*) as n,
    count(*) / sum(count(*)) over (partition by judge_config) as share,
    (sum(count(*)) over (partition by judge_config))::bigint as n_verdicts,
    sum(attempts)::bigint as attempts
from revision_graded_verdicts
natural join $shown_judge_configs
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
--
-- with: figures/shared/shown_responses, figures/shared/shown_tasks
with compared as (
    select
        shown_responses.entry as model,
        graders.grader, scores.task_id, scores.value,
        -- The mean of the other graders.
        round((fsum(scores.value) over same - scores.value) / (count(*) over same - 1), 12)
            as others_value
    from scores
    semi join shown_tasks using (task_id)
    inner join shown_responses using (benchmark, dataset_revision, response_id)
    -- The id of a judge as a grader is the hash of its configuration.
    inner join graders
        on scores.benchmark = graders.benchmark
            and graders.grader_id = hash(
                scores.judge, scores.judge_config_hash, scores.template_hash, scores.grading,
                scores.judge_trial
            )
    where scores.benchmark = $benchmark
        and dataset_revision = $dataset_revision
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
    group by all
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

select
    grader,
    model,
    own_mean,
    others_mean,
    difference,
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
select
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    is_member,
    breakdown,
    nullif(label, '') as label,
    n,
    n_tasks,
    met_share_a,
    met_share_b,
    macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    agreement,
    agreement_ci_low,
    agreement_ci_high,
    grader_a || ' - ' || grader_b as pair
from intermediate.agreement_figures
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and breakdown = $breakdown
    and ($graders = [] or list_has_any($graders, [grader_a, grader_b]))
order by label, is_member, 'imported' not in (kind_a, kind_b), n desc, grader_a, grader_b;

-- name: variant_agreement
-- Agreement with imported graders (usually people) for each wording of the rubric
-- and each grading. Sums in another order differ in the last digits, so means are
-- rounded.
select
    breakdown,
    label,
    rubric,
    replace(grading, '_', ' ') as grading,
    grader,
    reference,
    n,
    n_tasks,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    round(macro_f1_task_mean, 12) as macro_f1_task_mean,
    round(macro_f1_task_mean_absent_as_0, 12) as macro_f1_task_mean_absent_as_0,
    kappa,
    agreement,
    n < 50 as is_few,
    grader || ' - ' || reference as pair,
    rubric || ', ' || replace(grading, '_', ' ') as variant
from variant_agreement
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and breakdown = 'all'
order by rubric <> 'original', rubric, grading, grader, reference;

-- name: judge_reliability
-- Agreement of all graders, of a judge's repetitions, and of a majority's members.
select
    grader_set,
    breakdown,
    nullif(label, '') as label,
    n_graders,
    n,
    n_tasks,
    unanimous_share,
    alpha,
    alpha_ci_low,
    alpha_ci_high,
    n_voters,
    effective_votes,
    effective_votes_ci_low,
    effective_votes_ci_high,
    effective_votes_is_small,
    effective_votes_note
from grader_reliability
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and breakdown = $breakdown
order by label, grader_set;

-- name: neighbour_effects
-- Changes of verdicts by other criteria in a call. The judge need not have any
-- other verdicts: then its label is its name.
select
    coalesce(judge_config, judge) as judge_config,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    arrangement,
    compared_with,
    measure_of,
    breakdown,
    label,
    n,
    n_tasks,
    before,
    after,
    change,
    change_ci_low,
    change_ci_high,
    is_small
from neighbour_effects
natural left join $shown_judge_configs
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and is_among($judges, judge)
order by judge, measure_of <> 'met', measure_of, compared_with, arrangement, breakdown, label;

-- name: calibration
-- A judge's probabilities against the decisions of another grader.
select
    judge,
    reference,
    breakdown,
    label,
    n,
    n_tasks,
    mean_probability,
    met_share,
    brier,
    brier_ci_low,
    brier_ci_high,
    reliability,
    resolution,
    uncertainty,
    plain_error,
    calibration_error,
    calibration_error_ci_low,
    calibration_error_ci_high,
    is_small
from calibration
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by judge, reference, breakdown, label;

-- name: reliability_diagram
-- The share of criteria that are met, by the judge's probability.
select
    judge,
    reference,
    breakdown,
    label,
    bin,
    n,
    mean_probability,
    met_share
from calibration_curve
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by judge, reference, breakdown, label, bin;

-- name: judge_leniency
-- How much more often a grader says "met" than the others.
select
    grader,
    kind,
    n,
    met_share,
    others_met_share,
    leniency
from judge_leniency
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by leniency desc, grader;

-- name: uncertainty
-- The variance of a model's mean score by source, and what more of each source would change. Prices
-- are means of stored responses and verdicts; that of another judge is the mean of those there are.
--
-- with: figures/shared/shown_runs, figures/costs/response_costs
with sources as (
    select figure_id, basis,
        split_part(measure, ':', 1) as source,
        any_value(value) filter (measure like '%:variance') as variance,
        any_value(value) filter (measure like '%:share') as variance_share,
        any_value(value) filter (measure like '%:width') as width,
        any_value(value) filter (measure like '%:width_after') as width_after,
        any_value(value) filter (measure like '%:single_width') as single_width,
        any_value(ci_low) as variance_ci_low,
        any_value(ci_high) as variance_ci_high,
        any_value(is_small) as is_small,
        any_value(note) as note
    from measures
    group by all
)

select
    if(judge_key is null, 'several judges', shown_runs.judge_config) as judge_config,
    scores.split,
    is_hard,
    entry as model,
    source,
    variance,
    variance_ci_low,
    variance_ci_high,
    is_small,
    variance_share,
    width,
    single_width,
    width_after,
    case source
        when 'tasks'
            then (figures.n_responses * response_usd + n_scores * verdicts_usd)
                * 100 / figures.n_tasks
        when 'trials'
            then figures.n_tasks * (response_usd + n_scores * verdicts_usd / figures.n_responses)
        when 'judge trials' then figures.n_responses * verdicts_usd
        else
            figures.n_responses
            * avg(verdicts_usd) filter (judge_key is not null) over (partition by sampling_key)
    end as change_usd,
    figures.n_tasks,
    figures.n_responses,
    n_scores,
    note,
    shown_runs.model as model_label,
    vintage
from intermediate.uncertainty_figures as figures
inner join sources using (figure_id, basis)
inner join intermediate.mean_scores as scores on figures.first_score_id = scores.figure_id
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
left join response_costs as costs
    on shown_runs.judge_config = costs.judge_config
        and scores.split = costs.split
        and entry = costs.model
where score_name = $score
order by judge_key is null, shown_runs.judge_config <> $main, judge_config, is_hard, scores.split,
    entry, list_position(['tasks', 'trials', 'judge trials'], source);
