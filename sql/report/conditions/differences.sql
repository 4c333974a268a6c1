-- What each condition changes beside the baseline of its model, on each split
-- and under each judge: over the whole rubric, or by category. Categories get a
-- score that is defined for negative weights alone too.
-- begins with: entries, judgings, shown_splits
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
order by judging <> $main, judging, is_hard, split, shared_model, position, label
