-- Which model runs are there, of which revision, when were they answered and
-- when judged?
with of_benchmark as (
    select * from intermediate.model_runs
    -- As they were asked for: with the binary reading of three steps beside
    -- them, each pair would be compared twice, and all be corrected for that.
    where benchmark = $benchmark and grading <> 'ternary_as_binary'
),

answered as (
    select benchmark, dataset_revision, model, model_config_hash, vintage,
        max(created_at) as answered_at
    from responses
    group by all
),

judged as (
    select judge, judge_config_hash, template_hash, grading, judge_trial,
        max(created_at) as judged_at
    from intermediate.graded_verdicts
    where benchmark = $benchmark
    group by all
)

select of_benchmark.*,
    counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash) as is_by_judge,
    answered_at, judged_at
from of_benchmark
inner join answered using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join judged using (judge, judge_config_hash, template_hash, grading, judge_trial)
-- The order of names, so that the same question has the same answer.
order by vintage, judge, judge_trial, template_hash, judge_config_hash, grading,
    model, model_config_hash, dataset_revision
