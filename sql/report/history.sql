-- How each model's score went on from sampling to sampling, of all revisions and under all templates that are stored.
-- Where data set, model configuration, judge, template or grading are others than before, one line ends and another
-- begins.
-- begins with: entries, judgings
with offered_models as (
    select model, list(entry order by entry) as entries
    from entries
    group by model
),

offered_judges as (
    select judge, judge_trial, list(judging order by judging) as judgings
    from judgings
    group by judge, judge_trial
),

judging_starts as (
    select
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial,
        min(created_at) as first_judged_at
    from verdicts
    where benchmark = $benchmark
    group by all
),

-- Nights in which the judge decided otherwise than it does; their scores are no measure.
drifted as (
    select distinct
        dataset_revision,
        night as vintage,
        judge,
        judge_config_hash,
        template_hash,
        grading
    from judge_drift
    where benchmark = $benchmark and is_out_of_control
),

figures as (
    select
        leaderboard.*,
        judging_starts.first_judged_at,
        drifted.judge is not null as is_drifted,
        -- The same for all who judged the sampling, whichever of its answers they judged.
        min(first_answered_at) over (
            partition by model, model_config_hash, dataset_revision, vintage
        ) as answered_at
    from leaderboard
    inner join judging_starts
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    left join drifted
        using (
            dataset_revision, vintage, judge, judge_config_hash, template_hash,
            grading
        )
    where
        benchmark = $benchmark
        and score_name = $score
        -- A sampling without a single complete task is no measure, and neither a step nor a break.
        and mean_score is not null
        and (
            len($splits::varchar[]) = 0
            or list_contains($splits::varchar[], split)
        )
),

placed as (
    select
        *,
        dense_rank() over (
            partition by split, model, judge, judge_trial
            order by answered_at, dataset_revision, model_config_hash, vintage
        ) as place
    from figures
),

stepped as (
    select
        *,
        coalesce(place - lag(place) over alike = 1, false) as is_continued,
        -- Of the means before clipping, which hides how one of 0 goes on.
        if(is_continued, raw_mean_score - lag(raw_mean_score) over alike, null)
            as change,
        concat_ws(
            ', ',
            if(lag(dataset_revision) over in_time <> dataset_revision, 'data set', null),
            if(lag(model_config_hash) over in_time <> model_config_hash, 'model', null),
            if(lag(judge_config_hash) over in_time <> judge_config_hash, 'judge', null),
            if(lag(template_hash) over in_time <> template_hash, 'template', null),
            if(lag(grading) over in_time <> grading, 'grading', null)
        ) as differs
    from placed
    window
        alike as (
            partition by
                split, model, model_config_hash, dataset_revision, judge,
                judge_config_hash, template_hash, grading, judge_trial
            order by place
        ),
        in_time as (
            partition by split, model, judge, judge_trial
            order by
                place, first_judged_at, judge_config_hash, template_hash,
                grading
        )
),

spans as (
    select
        split,
        model,
        judge,
        judge_trial,
        min(answered_at) as since,
        max(answered_at) as until
    from placed
    where judge_config_hash <> 'imported'
    group by all
),

-- A judge that begins after another has ended has taken over from it.
taken_over as (
    select
        later.* exclude (until),
        arg_max(earlier.judge, (earlier.until, earlier.judge))
            as previous_judge
    from spans as later
    inner join spans as earlier
        on
            later.split = earlier.split
            and later.model = earlier.model
            and later.judge_trial = earlier.judge_trial
            and earlier.until < later.since
    group by all
),

final as (
    select
        stepped.*,
        case
            when is_continued then null
            when differs <> '' then differs
            when answered_at = taken_over.since
                then 'judge (before: ' || taken_over.previous_judge || ')'
        end as changed,
        sum(if(is_continued, 0, 1)) over (
            partition by
                stepped.split, stepped.model, stepped.model_config_hash,
                dataset_revision, stepped.judge, judge_config_hash,
                template_hash, grading, stepped.judge_trial
            order by place
        ) as stretch
    from stepped
    left join taken_over using (split, model, judge, judge_trial)
)

select
    split,
    model as label,
    judge || if(judge_trial > 1, ' #' || judge_trial, '') as judged_by,
    timezone('UTC', answered_at) as answered_at,
    vintage,
    mean_score,
    ci_low,
    ci_high,
    -- Only where clipping hides it.
    if(raw_ci_low < ci_low or raw_mean_score < mean_score, raw_mean_score, null)
        as raw_mean_score,
    if(raw_ci_low < ci_low, raw_ci_low, null) as raw_ci_low,
    if(raw_ci_low < ci_low, raw_ci_high, null) as raw_ci_high,
    is_small,
    change,
    changed,
    is_drifted,
    n_tasks,
    n_tasks_wanted,
    coverage,
    n_trials,
    -- Told only where a label or a judge has had several.
    if(count(distinct dataset_revision) over () > 1, dataset_revision[:8], null)
        as revision,
    if(
        count(distinct model_config_hash) over of_model > 1,
        model_config_hash[:8],
        null
    ) as configuration,
    if(
        count(distinct judge_config_hash) over of_judge > 1,
        judge_config_hash[:8],
        null
    ) as judge_configuration,
    if(
        count(distinct template_hash) over of_judge > 1, template_hash[:8], null
    ) as template,
    if(count(distinct grading) over of_judge > 1, grading, null) as grading,
    dense_rank() over (
        order by
            split, model, judge, judge_trial, model_config_hash,
            dataset_revision, judge_config_hash, template_hash, grading, stretch
    ) as line,
    count(*) over (partition by split, model, judge, judge_trial) as n_points,
    -- What has to be chosen at the top of the page for the row to be shown.
    offered_models.entries as model,
    offered_judges.judgings as judging
from final
inner join offered_models using (model)
inner join offered_judges using (judge, judge_trial)
window
    of_model as (partition by model),
    of_judge as (partition by judge)
order by split, judge, judge_trial, model, place, first_judged_at, line
