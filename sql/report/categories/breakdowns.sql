-- The mean score under each label of one breakdown, on each split and under
-- each judge; labels with the best means first. The criteria under a label may
-- all have negative weights, so they get a score that is defined for those too.
-- begins with: shown_scores, shown_splits
select judging, split, is_hard, label,
    displayed_rank as rank,
    entry as model,
    score_name, mean_score, ci_low, ci_high,
    hidden_mean_score as raw_mean_score,
    hidden_ci_low as raw_ci_low,
    hidden_ci_high as raw_ci_high,
    is_small, mean_lower, mean_upper, n_tasks, n_tasks_wanted, coverage
from shown_scores
inner join shown_splits using (split)
where breakdown = $breakdown
    and score_name = if($of_criteria, $label_score, $score)
    and not is_own_hard
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    try_cast(label as integer) nulls last,
    -- What is equal but for rounding is a tie.
    round(avg(mean_score) over (partition by judging, split, label), 9) desc nulls last,
    label,
    displayed_rank nulls last,
    entry
