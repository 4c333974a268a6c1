-- Mean length of the answers (letters and digits) beside the mean score, on
-- each split and under each judge.
-- begins with: shown_scores, shown_splits
select judging, split, is_hard,
    entry as model,
    mean_chars_alnum, mean_completion_tokens, mean_score, ci_low, ci_high, is_small, n_tasks,
    n_tasks_wanted, coverage
from shown_scores
inner join shown_splits using (split)
where score_name = $score and breakdown = 'all' and is_judged and not is_own_hard
order by judging <> $main, judging, is_hard, split, mean_score desc nulls last, entry
