-- The best models of a revision on each split, in their latest samplings, under
-- the judging that most rests on; one that was imported, or is read from
-- another, only where there is none beside it.
with judgings as (
    select judge, judge_config_hash, template_hash, grading, judge_trial, sum(n_tasks) as n_tasks
    from leaderboard
    where benchmark = $benchmark
        and dataset_revision = $revision
        and is_primary
        and counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash)
    group by all
),

chosen as (
    select * exclude (n_tasks)
    from judgings
    order by judge_config_hash = 'imported', grading = 'ternary_as_binary',
        n_tasks desc, judge, judge_trial, grading, template_hash, judge_config_hash
    limit 1
)

select split, latest_rank as rank, model, mean_score, ci_low, ci_high, n_tasks, judge
from leaderboard
inner join chosen using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark
    and dataset_revision = $revision
    and is_primary
    and is_latest
    and latest_rank <= $most
order by split, latest_rank, model, model_config_hash
