-- name: condition_changes
-- Number of criteria of each category that changed between a condition and its
-- baseline, on each split and under each judge, with their points.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    entry as model,
    shared_model,
    condition,
    category as label,
    count(*) as n_compared,
    count(*) filter (is_changed) as n_changed,
    count(*) filter (points > 0) as n_gained,
    count(*) filter (points < 0) as n_lost,
    coalesce(exact_sum(if(points > 0, points, null)), 0) as points_gained,
    coalesce(exact_sum(if(points < 0, points, null)), 0) as points_lost,
    exact_sum(points) as points_net
from condition_criteria
inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where is_latest or $vintage is not null
group by judge_config, split, is_hard, entry, shared_model, condition, position, category
order by judge_config <> $main, judge_config, is_hard, split, shared_model, position, label, model;

-- name: condition_criteria
-- The criteria that gain most points under a condition, and those that lose
-- most, for each comparison under each judge.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    entry as model,
    shared_model,
    condition,
    points,
    title as criterion,
    category as label,
    baseline_value,
    value,
    baseline_by_trial,
    by_trial,
    task_id,
    criterion_id,
    model as model_label,
    model_config_hash,
    baseline_model,
    baseline_config_hash,
    vintage
from condition_criteria
natural join shown_runs
semi join (
    from intermediate.task_set_members
    inner join $shown_sets using (split, is_own_hard)
) as members using (benchmark, dataset_revision, task_id)
where (is_latest or $vintage is not null)
    and points <> 0
qualify row_number() over (
    partition by judge_config, entry, shared_model, condition, points > 0
    order by abs(points) desc, task_id, criterion_id
) <= $n_criteria
order by judge_config <> $main, judge_config, shared_model, position, points desc, task_id,
    criterion_id, vintage;

-- name: condition_differences
-- Each condition and its baseline, over the whole rubric or by category (with the
-- score that categories without a positive weight have too). A split without
-- responses on either side is left out.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    entry as model,
    model as model_label,
    is_own_hard,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    is_latest,
    shared_model,
    condition,
    position,
    baseline,
    model_config_hash,
    baseline_model,
    baseline_config_hash,
    n_trials,
    baseline_n_trials,
    score_name,
    breakdown,
    nullif(label, '') as label,
    n_tasks,
    n_tasks_wanted,
    n_differing,
    baseline_mean_score,
    mean_score,
    difference,
    ci_low,
    ci_high,
    coalesce(is_small, false) as is_small,
    p_value,
    p_holm,
    coalesce(is_significant, false) as is_significant,
    n_comparisons,
    smallest_detectable,
    method,
    n_responses,
    baseline_n_responses,
    n_failed,
    baseline_n_failed,
    n_unpriced,
    baseline_n_unpriced,
    n_tasks_with_response,
    mean_chars_alnum,
    baseline_mean_chars_alnum,
    mean_completion_tokens,
    baseline_mean_completion_tokens,
    mean_cost_usd,
    baseline_mean_cost_usd,
    mean_latency_s,
    baseline_mean_latency_s,
    shared_model || ': ' || condition as name,
    mean_chars_alnum / nullif(baseline_mean_chars_alnum, 0) as chars_ratio,
    mean_completion_tokens / nullif(baseline_mean_completion_tokens, 0) as tokens_ratio,
    mean_cost_usd / nullif(baseline_mean_cost_usd, 0) as usd_ratio,
    mean_latency_s / nullif(baseline_mean_latency_s, 0) as latency_ratio,
    case
        when ci_low is not null then null
        when n_tasks = 0 then 'no task is complete on both sides'
        when p_value is not null then 'nearly all tasks change alike'
        when n_differing is null then 'not computed yet'
        when n_differing > 0 or difference <> 0 then 'too few tasks differ'
        else 'no task differs'
    end as no_interval
from condition_differences
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where (is_latest or $vintage is not null)
    and n_responses + baseline_n_responses > 0
    and breakdown = $breakdown
    and score_name = if($breakdown = 'all', $score, $label_score)
order by judge_config <> $main, judge_config, is_hard, split, shared_model, position, label,
    vintage;
