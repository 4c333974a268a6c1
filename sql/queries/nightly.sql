-- name: pairs
-- The models that were sampled and judged in a night, by judge configuration,
-- with the last comparable vintage: the last night or the pinned vintage with at
-- least half as many verdicts, in which the judge was in control. Nights that
-- were cut short or out of control are not compared with.
with judged as (
    select responses.model, responses.model_config_hash, responses.vintage, verdicts.judge,
        verdicts.judge_config_hash, verdicts.template_hash, verdicts.grading, verdicts.judge_trial,
        min(responses.created_at) as first_response_at,
        count(*) as n_decided
    from verdicts
    inner join responses using (response_id)
    where verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $revision
        and verdicts.value is not null
        and (
            responses.vintage = 'base'
            or responses.vintage
            in (select night from runs where night is not null)
        )
    group by all
),

out_of_control as (
    select night as vintage, judge, judge_config_hash, template_hash, grading
    from judge_drift
    where benchmark = $benchmark and dataset_revision = $revision and is_out_of_control
),

usable as (
    select *
    from judged
    anti join out_of_control using (vintage, judge, judge_config_hash, template_hash, grading)
)

select tonight.model, tonight.model_config_hash, tonight.judge, tonight.judge_config_hash,
    tonight.template_hash, tonight.grading, tonight.judge_trial,
    arg_max(earlier.vintage, earlier.first_response_at) as last_vintage
from judged as tonight
left join usable as earlier
    on tonight.model = earlier.model
        and tonight.model_config_hash = earlier.model_config_hash
        and tonight.judge = earlier.judge
        and tonight.judge_config_hash = earlier.judge_config_hash
        and tonight.template_hash = earlier.template_hash
        and tonight.grading = earlier.grading
        and tonight.judge_trial = earlier.judge_trial
        and earlier.vintage <> $night
        and earlier.first_response_at < tonight.first_response_at
        and 2 * earlier.n_decided >= tonight.n_decided
where tonight.vintage = $night
group by all
order by all;
