-- One row: a model's score in one sampling under one judging, with its place in
-- the order of samplings.
with judging_starts as (
    select judge, judge_config_hash, template_hash, grading, judge_trial,
        min(created_at) as first_judged_at
    from verdicts
    where benchmark = $benchmark
    group by all
),

-- Nights in which the judge decided otherwise than it does; their scores are no
-- measure.
drifted as (
    select distinct dataset_revision,
        night as vintage,
        judge, judge_config_hash, template_hash, grading
    from judge_drift
    where benchmark = $benchmark and is_out_of_control
),

figures as (
    select displayed.*, judging_starts.first_judged_at,
        drifted.judge is not null as is_drifted,
        -- The same for all who judged the sampling, whichever of its answers
        -- they judged.
        min(first_answered_at) over (
            partition by model, model_config_hash, dataset_revision, vintage
        ) as answered_at
    from staging.displayed_scores as displayed
    inner join judging_starts using (judge, judge_config_hash, template_hash, grading, judge_trial)
    left join drifted
        using (dataset_revision, vintage, judge, judge_config_hash, template_hash, grading)
    where benchmark = $benchmark
        and score_name = $score
        and breakdown = 'all'
        and not is_own_hard
        -- A sampling without a single complete task is no measure, and neither
        -- a step nor a break.
        and mean_score is not null
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
),

placed as (
    select *,
        dense_rank() over (
            partition by split, model, judge, judge_trial
            order by answered_at, dataset_revision, model_config_hash, vintage
        ) as place
    from figures
)

select * from placed
