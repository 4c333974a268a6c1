-- Spearman's rank correlation (tied values share the mean of their ranks) of
-- length and score: over the tasks of a model, and over the models of a task
-- set. A task is one point, the mean over its trials, so nothing hangs together
-- within what is ranked. The 95 % interval is Fisher's z with the variance (1 +
-- r^2 / 2) / (n - 3) (Bonett and Wright, 2000).
--
-- built as: table
-- depends on: staging.model_runs, staging.task_set_members,
--     staging.task_values, temp.task_lengths
with of_tasks as (
    select
        task_set_members.task_set_id,
        task_values.ranking_id,
        task_values.model_run_id,
        task_values.score_name,
        'tasks' as level,
        -- What is equal but for rounding is a tie.
        round(task_values.value, 12) as score,
        task_lengths.mean_chars_alnum as chars,
        task_lengths.mean_completion_tokens as tokens
    from staging.task_values
    inner join temp.task_lengths using (model_run_id, task_id)
    inner join staging.task_set_members
        on
            task_values.benchmark = task_set_members.benchmark
            and task_values.dataset_revision = task_set_members.dataset_revision
            and task_values.task_id = task_set_members.task_id
    where task_values.breakdown = 'all' and task_values.value is not null
),

of_models as (
    select
        task_set_id,
        ranking_id,
        null::ubigint as model_run_id,
        score_name,
        'models' as level,
        round(favg(score), 12) as score,
        round(favg(chars), 9) as chars,
        round(favg(tokens), 9) as tokens
    from of_tasks
    group by task_set_id, ranking_id, of_tasks.model_run_id, score_name
),

lengths as (
    unpivot (
        select * from of_tasks
        union all by name
        select * from of_models
    )
    on chars as chars_alnum, tokens as completion_tokens
    into name measure value length
),

ranked as (
    select
        *,
        rank() over by_score + (count(*) over same_score - 1) / 2 as score_rank,
        rank() over by_length + (count(*) over same_length - 1) / 2 as length_rank
    from lengths
    window
        by_score as (
            partition by task_set_id, ranking_id, model_run_id, score_name, level, measure
            order by score
        ),
        same_score as (
            partition by
                task_set_id, ranking_id, model_run_id, score_name, level, measure, score
        ),
        by_length as (
            partition by task_set_id, ranking_id, model_run_id, score_name, level, measure
            order by length
        ),
        same_length as (
            partition by
                task_set_id, ranking_id, model_run_id, score_name, level, measure, length
        )
),

correlated as (
    select
        task_set_id,
        ranking_id,
        model_run_id,
        score_name,
        level,
        measure,
        count(*) as n,
        if(
            stddev_pop(score_rank) > 0 and stddev_pop(length_rank) > 0,
            corr(score_rank, length_rank),
            null
        ) as rank_correlation
    from ranked
    group by all
),

bounded as (
    select
        *,
        -- Below 10, and where the ranks agree in full, the formula does not hold.
        if(
            n >= 10 and abs(rank_correlation) < 1 - 1e-9,
            1.959963984540054 * sqrt((1 + rank_correlation ** 2 / 2) / (n - 3)),
            null
        ) as half,
        atanh(if(half is null, null, rank_correlation)) as z
    from correlated
),

task_sets as (
    select distinct task_set_id, benchmark, dataset_revision, split, is_own_hard
    from staging.task_set_members
),

rankings as (
    select distinct
        ranking_id,
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial,
        vintage
    from staging.model_runs
),

final as (
    select
        task_sets.* exclude (task_set_id),
        rankings.* exclude (ranking_id),
        bounded.level,
        model_runs.model,
        model_runs.model_config_hash,
        bounded.score_name,
        bounded.measure,
        bounded.n,
        bounded.rank_correlation,
        tanh(bounded.z - bounded.half) as ci_low,
        tanh(bounded.z + bounded.half) as ci_high,
        bounded.n < 50 as is_small
    from bounded
    inner join task_sets using (task_set_id)
    inner join rankings using (ranking_id)
    left join staging.model_runs using (model_run_id)
)

select * from final
