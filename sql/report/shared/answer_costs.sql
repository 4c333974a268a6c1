-- One row: what a model's answers on a split cost, and what judging them did;
-- without a judging those that nobody has judged.
-- begins with: entries, judgings, shown_answers, shown_splits
with judged as (
    select judgings.judging, split,
        entries.entry as model,
        answer_usd,
        if(is_judging_usd_unknown, null, judging_usd) as judging_usd
    from staging.judged_answers
    inner join shown_splits using (split)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
),

unjudged as (
    select task_set_members.split,
        shown_answers.entry as model,
        shown_answers.cost_usd as answer_usd
    from shown_answers
    inner join staging.task_set_members using (benchmark, dataset_revision, task_id)
    inner join shown_splits using (split)
    anti join judged on shown_answers.entry = judged.model
    where not task_set_members.is_own_hard
),

costs as (
    select judging, split, model,
        round(exact_avg(answer_usd), 12) as answer_usd,
        round(exact_avg(judging_usd), 12) as judging_usd,
        case
            when count(*) = count(answer_usd) then round(exact_sum(answer_usd), 9)
        end as all_answers_usd,
        count(*) as n_answers,
        count(*) - count(answer_usd) as n_unpriced_answers
    from (from judged union all by name from unjudged)
    group by all
)

select * from costs
