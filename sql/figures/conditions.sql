-- name: condition_changes
-- How many criteria of each category changed between a condition and its
-- baseline, on each split and under each judge, and what they are worth.
with counted as (
    select judgings.judging, members.split, shown_splits.is_hard,
        entries.entry as model,
        criteria.shared_model, criteria.condition, criteria.position,
        criteria.category as label,
        count(*) as n_compared,
        count(*) filter (is_changed) as n_changed,
        count(*) filter (points > 0) as n_gained,
        count(*) filter (points < 0) as n_lost,
        coalesce(exact_sum(if(points > 0, points, null)), 0) as points_gained,
        coalesce(exact_sum(if(points < 0, points, null)), 0) as points_lost,
        exact_sum(points) as points_net
    from condition_criteria as criteria
    inner join staging.task_set_members as members using (benchmark, dataset_revision, task_id)
    inner join shown_splits on members.split = shown_splits.split
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where criteria.benchmark = $benchmark
        and criteria.dataset_revision = $revision
        and not members.is_own_hard
    group by all
)

select * exclude (position)
from counted
order by judging <> $main, judging, is_hard, split, shared_model, position, label;

-- name: condition_criteria
-- The criteria that gain most points under a condition, and those that lose
-- most, for each comparison under each judge.
with changed as (
    select judgings.judging,
        entries.entry as model,
        criteria.model as model_label,
        criteria.* exclude (model, judge, judge_config_hash, template_hash, grading, judge_trial)
    from condition_criteria as criteria
    semi join shown_tasks using (task_id)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where criteria.benchmark = $benchmark and criteria.dataset_revision = $revision and points <> 0
),

placed as (
    select *,
        row_number() over (
            partition by judging, model, shared_model, condition, points > 0
            order by abs(points) desc, task_id, criterion_id
        ) as place
    from changed
)

select judging, model, shared_model, condition, points,
    title as criterion,
    category as label,
    baseline_value, value, task_id, criterion_id, model_label, model_config_hash, baseline_model,
    baseline_config_hash, vintage
from placed
where place <= 10
order by judging <> $main, judging, shared_model, position, points desc, task_id, criterion_id;

-- name: differences
-- What each condition changes beside the baseline of its model, on each split
-- and under each judge: over the whole rubric, or by category. Categories get a
-- score that is defined for negative weights alone too.
select judgings.judging, split, is_hard,
    entries.entry as model,
    shared_model, condition,
    shared_model || ': ' || condition as name,
    baseline, baseline_model,
    nullif(label, '') as label,
    score_name, n_tasks, n_tasks_wanted, baseline_mean_score, mean_score, difference, ci_low,
    ci_high,
    coalesce(is_small, false) as is_small,
    p_value,
    p_holm as p_adjusted,
    coalesce(is_significant, false) as is_significant,
    n_comparisons, smallest_detectable,
    case
        when ci_low is not null then null
        when n_tasks = 0 then 'no task is complete on both sides'
        when p_value is not null then 'nearly all tasks change alike'
        when n_differing is null then 'not computed yet'
        when n_differing > 0 or difference <> 0 then 'too few tasks differ'
        else 'no task differs'
    end as no_interval,
    least(n_trials, baseline_n_trials) as n_trials,
    n_tasks_answered, baseline_mean_chars_alnum, mean_chars_alnum,
    mean_chars_alnum / nullif(baseline_mean_chars_alnum, 0) as chars_ratio,
    baseline_mean_completion_tokens, mean_completion_tokens,
    mean_completion_tokens / nullif(baseline_mean_completion_tokens, 0) as tokens_ratio,
    baseline_mean_cost_usd as baseline_answer_usd,
    mean_cost_usd as answer_usd,
    mean_cost_usd / nullif(baseline_mean_cost_usd, 0) as usd_ratio,
    baseline_mean_latency_s as baseline_latency_s,
    mean_latency_s as latency_s,
    mean_latency_s / nullif(baseline_mean_latency_s, 0) as latency_ratio,
    baseline_n_answers, n_answers, baseline_n_failed, n_failed
from condition_differences
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark
    and dataset_revision = $revision
    and not is_own_hard
    and n_answers + baseline_n_answers > 0
    and breakdown = $breakdown
    and score_name = if($breakdown = 'all', $score, $label_score)
order by judging <> $main, judging, is_hard, split, shared_model, position, label;
