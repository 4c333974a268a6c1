-- Spearman's rank correlation (tied values share the mean of their ranks) of length and score: over the tasks of a
-- model, and over the models of a board. A task is one point, the mean over its trials, so nothing hangs together within
-- what is ranked. The 95 % interval is Fisher's z with the variance (1 + r^2 / 2) / (n - 3) (Bonett and Wright, 2000).
with of_tasks as (
    select
        boards.board_id,
        task_parts.panel_id,
        task_parts.series_id,
        task_parts.score_name,
        'tasks' as level,
        -- What is equal but for rounding is a tie.
        round(task_parts.value, 12) as score,
        task_lengths.mean_chars_alnum as chars,
        task_lengths.mean_completion_tokens as tokens
    from task_parts
    inner join task_lengths using (series_id, task_id)
    inner join boards
        on
            task_parts.benchmark = boards.benchmark
            and task_parts.dataset_revision = boards.dataset_revision
            and task_parts.task_id = boards.task_id
    where task_parts.cut = 'all' and task_parts.value is not null
),

of_models as (
    select
        board_id,
        panel_id,
        null::ubigint as series_id,
        score_name,
        'models' as level,
        round(favg(score), 12) as score,
        round(favg(chars), 9) as chars,
        round(favg(tokens), 9) as tokens
    from of_tasks
    group by board_id, panel_id, of_tasks.series_id, score_name
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
            partition by board_id, panel_id, series_id, score_name, level, measure
            order by score
        ),
        same_score as (
            partition by
                board_id, panel_id, series_id, score_name, level, measure, score
        ),
        by_length as (
            partition by board_id, panel_id, series_id, score_name, level, measure
            order by length
        ),
        same_length as (
            partition by
                board_id, panel_id, series_id, score_name, level, measure, length
        )
),

correlated as (
    select
        board_id,
        panel_id,
        series_id,
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

named_boards as (
    select distinct board_id, benchmark, dataset_revision, split, is_own_hard
    from boards
),

panels as (
    select distinct
        panel_id,
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial,
        vintage
    from series
),

final as (
    select
        named_boards.* exclude (board_id),
        panels.* exclude (panel_id),
        bounded.level,
        series.model,
        series.model_config_hash,
        bounded.score_name,
        bounded.measure,
        bounded.n,
        bounded.rank_correlation,
        tanh(bounded.z - bounded.half) as ci_low,
        tanh(bounded.z + bounded.half) as ci_high,
        bounded.n < 50 as is_small
    from bounded
    inner join named_boards using (board_id)
    inner join panels using (panel_id)
    left join series using (series_id)
)

select * from final
