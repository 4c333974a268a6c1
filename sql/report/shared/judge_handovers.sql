-- One row: a judge that began after another had ended, and so took over from
-- it.
-- begins with: sampled_scores
with spans as (
    select split, model, judge, judge_trial, min(answered_at) as since, max(answered_at) as until
    from sampled_scores
    where judge_config_hash <> 'imported'
    group by all
),

-- A judge that begins after another has ended has taken over from it.
taken_over as (
    select
        later.* exclude (until),
        arg_max(earlier.judge, (earlier.until, earlier.judge)) as previous_judge
    from spans as later
    inner join spans as earlier
        on later.split = earlier.split
            and later.model = earlier.model
            and later.judge_trial = earlier.judge_trial
            and earlier.until < later.since
    group by all
)

select * from taken_over
