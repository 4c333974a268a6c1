-- The ranking of each model's latest sampling on whole splits, with the figure
-- that an interval belongs to: while a run goes on, its values may have none.
select rows.split, rows.judge, rows.judge_config_hash, rows.template_hash, rows.grading,
    rows.judge_trial,
    rows.latest_rank as rank,
    rows.model, rows.vintage, rows.mean_score, rows.ci_low, rows.ci_high, rows.is_small,
    rows.n_tasks, rows.n_tasks_wanted,
    rows.n_tasks_latest_ranked as n_tasks_ranked,
    rows.coverage, figures.figure_id, figures.mean_floor
from intermediate.leaderboard_rows as rows
inner join intermediate.mean_scores as figures
    using (
        benchmark, dataset_revision, split, is_own_hard, breakdown, label,
        judge, judge_config_hash, template_hash, grading, judge_trial,
        vintage, model, model_config_hash, score_name
    )
where rows.benchmark = $benchmark
    and rows.dataset_revision = $revision
    and rows.score_name = $score
    and rows.breakdown = 'all'
    and not rows.is_own_hard
    and rows.is_latest
    and rows.n_tasks > 0
    -- The binary reading of three steps says the same twice.
    and rows.grading <> 'ternary_as_binary'
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], rows.split))
    and (len($models::varchar[]) = 0 or list_contains($models::varchar[], rows.model))
    and counts_as_judge(
        $judges, rows.benchmark, rows.dataset_revision,
        rows.judge, rows.judge_config_hash
    )
order by rows.split, rows.judge, rows.judge_trial, rows.judge_config_hash,
    rows.template_hash, rows.latest_rank nulls last, rows.mean_score desc, rows.model
