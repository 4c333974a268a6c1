-- name: night_costs
-- Cost of the calls of each night, by purpose, with discarded attempts.
select
    night,
    purpose,
    known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    sum(prompt_tokens)::bigint as prompt_tokens,
    sum(cached_tokens)::bigint as cached_tokens,
    sum(completion_tokens)::bigint as completion_tokens
from run_costs
inner join (select run_id, config from runs) as configs using (run_id)
where night is not null
    and coalesce(json_extract_string(config, '$.benchmark'), $benchmark) = $benchmark
group by night, purpose
order by night, purpose;

-- name: runs
-- The runs, the latest first, with their rows and the cost of their calls. The
-- run that writes the report is left out, because its end is unknown. A run
-- without an end was killed, if its process had ended when the published state
-- was opened.
select
    timezone('UTC', started_at) as started_at,
    night,
    command,
    if(
        outcome = 'running' and not list_contains($living, run_id), 'killed', outcome
    ) as outcome,
    responses,
    verdicts,
    calls,
    cost_usd,
    unpriced_calls,
    epoch(ended_at - run_totals.started_at) / 60 as minutes,
    run_id,
    git_commit
from intermediate.run_totals
where coalesce(json_extract_string(config, '$.benchmark'), $benchmark) = $benchmark
    and (run_id <> $run or ended_at is not null)
order by run_totals.started_at desc, run_id;

-- name: history
-- Each model's score by vintage, over all stored revisions and templates. If data
-- set, model configuration, judge, template or grading changes, one line ends and
-- another begins.
--
-- with: figures/history/sampled_scores, figures/history/judge_handovers,
--     figures/history/offered_models
with offered_judges as (
    select judge, judge_trial, list(judge_config order by judge_config) as shown_judge_configs
    from $shown_judge_configs as shown_judge_configs
    group by judge, judge_trial
),

stepped as (
    select *,
        coalesce(sampling_order - lag(sampling_order) over alike = 1, false) as is_continued,
        -- Means before clipping, which would hide changes below 0.
        if(is_continued, raw_mean_score - lag(raw_mean_score) over alike, null) as change,
        concat_ws(
            ', ',
            if(lag(dataset_revision) over in_time <> dataset_revision, 'data set', null),
            if(lag(model_config_hash) over in_time <> model_config_hash, 'model', null),
            if(lag(judge_config_hash) over in_time <> judge_config_hash, 'judge', null),
            if(lag(template_hash) over in_time <> template_hash, 'template', null),
            if(lag(grading) over in_time <> grading, 'grading', null)
        ) as differs
    from sampled_scores
    window
        alike as (
            partition by split, model, model_config_hash, dataset_revision, judge,
                judge_config_hash, template_hash, grading, judge_trial
            order by sampling_order
        ),
        in_time as (
            partition by split, model, judge, judge_trial
            order by sampling_order, first_judged_at, judge_config_hash, template_hash, grading
        )
),

final as (
    select stepped.*,
        case
            when is_continued then null
            when differs <> '' then differs
            when first_response_at = judge_handovers.since
                then 'judge (before: ' || judge_handovers.previous_judge || ')'
        end as changed,
        sum(if(is_continued, 0, 1)) over (
            partition by stepped.split, stepped.model, stepped.model_config_hash,
                dataset_revision, stepped.judge, judge_config_hash,
                template_hash, grading, stepped.judge_trial
            order by sampling_order
        ) as stretch
    from stepped
    left join judge_handovers using (split, model, judge, judge_trial)
)

select
    split,
    model as label,
    judge || if(judge_trial > 1, ' #' || judge_trial, '') as judged_by,
    timezone('UTC', first_response_at) as first_response_at,
    vintage,
    mean_score,
    ci_low,
    ci_high,
    -- The values before clipping, if clipping changes any.
    if(raw_ci_low < ci_low or raw_mean_score < mean_score, raw_mean_score, null)
        as hidden_mean_score,
    if(raw_ci_low < ci_low, raw_ci_low, null) as hidden_ci_low,
    if(raw_ci_low < ci_low, raw_ci_high, null) as hidden_ci_high,
    is_small,
    change,
    changed,
    is_drifted,
    n_tasks,
    n_tasks_wanted,
    coverage,
    n_trials,
    -- Only if a label or a judge has had several.
    if(count(distinct dataset_revision) over () > 1, dataset_revision[:8], null) as revision,
    if(count(distinct model_config_hash) over of_model > 1, model_config_hash[:8], null)
        as configuration,
    if(count(distinct judge_config_hash) over of_judge > 1, judge_config_hash[:8], null)
        as judge_configuration,
    if(count(distinct template_hash) over of_judge > 1, template_hash[:8], null) as template,
    if(count(distinct grading) over of_judge > 1, grading, null) as grading,
    dense_rank() over (
        order by split, model, judge, judge_trial, model_config_hash,
            dataset_revision, judge_config_hash, template_hash, grading, stretch
    ) as line,
    count(*) over (partition by split, model, judge, judge_trial) as n_points,
    -- The choice at the top of the page under which the row is shown.
    offered_models.entries as model,
    offered_judges.shown_judge_configs as judge_config
from final
inner join offered_models using (model)
inner join offered_judges using (judge, judge_trial)
window of_model as (partition by model), of_judge as (partition by judge)
order by split, judge, judge_trial, model, sampling_order, first_judged_at, line;

-- name: offered_models
-- One row: a model, with its choices at the top of the page.
select model, list(entry order by entry) as entries
from $entries as entries
group by model;

-- name: sampled_scores
-- One row: a model's score in one vintage under one judge configuration, with the
-- vintage's index in time.
with first_verdicts as (
    select judge, judge_config_hash, template_hash, grading, judge_trial,
        min(created_at) as first_judged_at
    from verdicts
    where benchmark = $benchmark
    group by all
),

-- Nights in which the judge was out of control; no score is compared with theirs.
drifted as (
    select distinct dataset_revision,
        night as vintage,
        judge, judge_config_hash, template_hash, grading
    from judge_drift
    where benchmark = $benchmark and is_out_of_control
),

-- Verdicts on a sample of a vintage are no score of it by the new judge.
samples as (
    select distinct new_judge, new_judge_config_hash, new_template_hash,
        unnest(sampled_runs) as sampled_run
    from successions
    where benchmark = $benchmark
),

vintage_scores as (
    -- The time is the same for all judges of the vintage, whichever responses
    -- they judged.
    select scores.* replace (
            min(first_response_at) over (
                partition by model, model_config_hash, dataset_revision, vintage
            ) as first_response_at
        ),
        first_verdicts.first_judged_at,
        drifted.judge is not null as is_drifted
    from leaderboard as scores
    inner join first_verdicts using (judge, judge_config_hash, template_hash, grading, judge_trial)
    left join samples
        on scores.judge = new_judge
            and judge_config_hash = new_judge_config_hash
            and template_hash = new_template_hash
            and judge_trial = 1
            and sampled_run = scores.vintage || ' ' || model_config_hash || ' ' || scores.model
    left join drifted
        using (dataset_revision, vintage, judge, judge_config_hash, template_hash, grading)
    where benchmark = $benchmark
        and score_name = $score
        -- A vintage without a complete task is skipped: it neither continues nor
        -- ends a line.
        and mean_score is not null
        and is_among($splits, split)
        and (sampled_run is null or coverage >= 0.5)
)

select
    *,
    dense_rank() over (
        partition by split, model, judge, judge_trial
        order by first_response_at, dataset_revision, model_config_hash, vintage
    ) as sampling_order
from vintage_scores;

-- name: judge_handovers
-- One row: a judge of a model on a split that began after another judge had ended,
-- with the last such judge, which it replaces.
--
-- with: figures/history/sampled_scores
with spans as (
    select split, model, judge, judge_trial, min(first_response_at) as since,
        max(first_response_at) as until
    from sampled_scores
    where judge_config_hash <> 'imported'
    group by all
)

select
    later.* exclude (until),
    arg_max(earlier.judge, (earlier.until, earlier.judge)) as previous_judge
from spans as later
inner join spans as earlier using (split, model, judge_trial)
where earlier.until < later.since
group by all;

-- name: bridged
-- One row: a score by the new judge of a succession or, in a vintage that it has not covered, one
-- by the old judge, moved by the effect on the model ($shifts).
--
-- with: figures/history/sampled_scores, figures/history/offered_models
with new_scores as (
    select succession, sampled_scores.*
    from sampled_scores
    inner join intermediate.judge_configs
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    inner join (select distinct succession, split, successor_id from $shifts as shifts) as shifts
        on sampled_scores.split = shifts.split and judging_id = successor_id
),

sampled as (
    select shifts.*, dataset_revision, model, model_config_hash, judge, judge_config_hash,
        template_hash, grading, judge_trial
    from $shifts as shifts
    inner join intermediate.model_runs using (model_run_id)
),

moved_scores as (
    select
        sampled.* exclude (model_run_id, successor_id),
        scores.vintage,
        scores.first_response_at,
        scores.is_drifted,
        scores.n_tasks,
        raw_mean_score + effect as moved_score,
        -- The two errors are independent.
        moved_score - sqrt((raw_mean_score - raw_ci_low) ** 2 + (effect - effect_ci_low) ** 2)
            as low,
        moved_score + sqrt((raw_ci_high - raw_mean_score) ** 2 + (effect_ci_high - effect) ** 2)
            as high
    from sampled
    inner join sampled_scores as scores
        using (
            split, dataset_revision, model, model_config_hash, judge, judge_config_hash,
            template_hash, grading, judge_trial
        )
    anti join new_scores
        using (succession, split, model, model_config_hash, dataset_revision, vintage)
),

points as (
    select succession, split, model, vintage, judge, first_response_at, n_tasks, is_drifted,
        true as is_estimated,
        -- greatest() would make the floor of an end that is NULL.
        if(moved_score < mean_floor, mean_floor, moved_score) as mean_score,
        if(low < mean_floor, mean_floor, low) as ci_low,
        if(high < mean_floor, mean_floor, high) as ci_high,
        effect,
        effect_ci_low,
        effect_ci_high
    from moved_scores
    union all by name
    select succession, split, model, vintage, judge, first_response_at, n_tasks, is_drifted,
        false as is_estimated,
        mean_score,
        ci_low,
        ci_high
    from new_scores
)

select
    succession as judged_by,
    split,
    model as label,
    timezone('UTC', first_response_at) as first_response_at,
    vintage,
    judge,
    is_estimated,
    mean_score,
    ci_low,
    ci_high,
    effect,
    effect_ci_low,
    effect_ci_high,
    n_tasks,
    is_drifted,
    if(
        not is_estimated and lag(is_estimated) over of_model, 'judge', null
    ) as changed,
    dense_rank() over (order by succession, split, model, is_estimated) as line,
    offered_models.entries as model
from points
inner join offered_models using (model)
window of_model as (partition by succession, split, model order by points.first_response_at)
order by succession, split, model, points.first_response_at;
