-- Which criteria of responses are not decided, and why?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

wanted as (
    select response_id, model, vintage, judge, n_wanted
    from scores
    natural join judge
    where is_primary and is_latest
),

details as (
    select response_id, status, value, count(*) as n_criteria
    from verdict_details
    natural join judge
    where is_latest
    group by all
),

not_judged as (
    select response_id,
        'not_judged' as status,
        n_wanted - coalesce(sum(n_criteria), 0) as n_not_judged
    from wanted
    left join details using (response_id)
    group by response_id, n_wanted
    having n_not_judged > 0
),

undecided as (
    select response_id, status, n_criteria
    from details
    where value is null
    union all
    select response_id, status, n_not_judged
    from not_judged
)

select model, vintage, judge, status,
    sum(n_criteria)::bigint as criteria,
    count(distinct response_id) as responses
from undecided
inner join wanted using (response_id)
group by all
order by criteria desc, model, vintage, status
