-- name: length_fifths
-- A model's responses in five groups of equal size, the shortest first: the mean
-- of their scores (equation 1, not clipped) in each group, and the mean over all
-- five. Only completely decided responses count.
--
-- with: figures/shared/shown_runs, figures/lengths/shown_scores
with grouped as (
    select judge_config, split, is_hard,
        entry as model,
        task_id, chars_alnum, value,
        ntile(5) over (
            partition by judge_config, split, entry
            order by chars_alnum, response_id
        ) as fifth,
        favg(value) over (partition by judge_config, split, entry) as whole_mean
    from response_lengths
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    inner join $shown_sets using (split, is_own_hard)
    natural join shown_runs
    semi join shown_scores using (judge_config, entry, split, is_own_hard)
    where score_name = $score
        and is_complete
        and chars_alnum is not null
)

select
    judge_config,
    split,
    is_hard,
    model,
    fifth,
    count(*) as n_responses,
    count(distinct task_id) as n_tasks,
    n_tasks < 50 as is_small,
    min(chars_alnum) as min_chars_alnum,
    max(chars_alnum) as max_chars_alnum,
    round(exact_avg(value), 12) as mean_value,
    round(any_value(whole_mean), 12) as own_mean,
    mean_value - own_mean as difference
from grouped
group by judge_config, split, is_hard, model, fifth
order by judge_config <> $main, judge_config, is_hard, split, own_mean desc, model, fifth;

-- name: shown_scores
-- One row: a model on a task set that the leaderboard shows it on, under a judge.
--
-- with: figures/shared/shown_runs
select distinct
    judge_config,
    entry,
    split,
    is_own_hard
from intermediate.leaderboard_rows
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where breakdown = 'all'
    and (is_latest or $vintage is not null);
