-- Over the tasks of a model, and over the models of a task set. The 95 %
-- interval is Fisher's z with the variance (1 + r^2 / 2) / (n - 3) (Bonett and
-- Wright, 2000).
--
-- built as: table
-- needs: temp.length_ranks
-- depends on: intermediate.current_vintages, intermediate.model_runs, intermediate.rankings,
--     intermediate.task_set_members, temp.length_ranks
with correlated as (
    select task_set_id, ranking_id, model_run_id, score_name, level, measure,
        count(*) as n,
        if(
            stddev_pop(score_rank) > 0 and stddev_pop(length_rank) > 0,
            exact_corr(score_rank, length_rank),
            null
        ) as rank_correlation,
        -- The formula is not valid below 10, nor if the ranks agree completely.
        if(
            n >= 10 and abs(rank_correlation) < 1 - 1e-9,
            1.959963984540054 * sqrt((1 + rank_correlation ** 2 / 2) / (n - 3)),
            null
        ) as half,
        atanh(if(half is null, null, rank_correlation)) as z
    from temp.length_ranks
    group by all
),

task_sets as (
    select distinct task_set_id, benchmark, dataset_revision, split, is_own_hard
    from intermediate.task_set_members
)

select
    task_sets.benchmark,
    task_sets.dataset_revision,
    task_sets.split,
    task_sets.is_own_hard,
    rankings.judge,
    rankings.judge_config_hash,
    rankings.template_hash,
    rankings.grading,
    rankings.judge_trial,
    rankings.vintage,
    correlated.level,
    model_runs.model,
    model_runs.model_config_hash,
    correlated.score_name,
    correlated.measure,
    correlated.n,
    correlated.rank_correlation,
    tanh(z - half) as ci_low,
    tanh(z + half) as ci_high,
    n < 50 as is_small,
    current_vintages.is_latest
from correlated
inner join task_sets using (task_set_id)
inner join intermediate.rankings using (ranking_id)
left join intermediate.model_runs using (model_run_id)
left join intermediate.current_vintages using (task_set_id, model_run_id)
