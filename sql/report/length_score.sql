-- Mean length of the answers (letters and digits) beside the mean score, on each split and under each judge.
select
    judging,
    split,
    list_contains($hard_splits::varchar[], split) as is_hard,
    entry as model,
    mean_chars_alnum,
    mean_completion_tokens,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    n_tasks,
    n_tasks_wanted,
    coverage
from board_figures
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and cut = 'all'
    and is_judged
    and not is_own_hard
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    mean_score desc nulls last,
    model
