-- One row: a model run on a task set, with a flag: true if its vintage is the model's current
-- one there, under its judge configuration.
--
-- The current vintage is the latest whose coverage reaches the bar. If none does, it is the
-- one with most coverage, of equal ones the later. Tasks that `stopping` left out count as
-- covered. This is the only definition; whatever shows one vintage of a model reads it.
-- The flag is called `is_latest`, as on the leaderboard, although a later vintage
-- may exist whose coverage does not reach the bar.
--
-- built as: table
-- depends on: intermediate.breakdown_sizes, intermediate.mean_scores, intermediate.model_runs,
--     intermediate.task_set_members, responses, split_members, stopping_scores
with stopped_tasks as (
    select distinct benchmark, dataset_revision, task_id, model, model_config_hash, vintage
    from stopping_scores
    inner join split_members using (benchmark, dataset_revision, split)
    where n_tasks_skipped > 0
),

skipped_criteria as (
    select members.task_set_id, model, model_config_hash, vintage,
        sum(members.n_criteria) as n_criteria_skipped
    from stopped_tasks
    inner join intermediate.task_set_members as members
        using (benchmark, dataset_revision, task_id)
    anti join responses
        using (benchmark, dataset_revision, task_id, model, model_config_hash, vintage)
    group by all
),

covered as (
    select mean_scores.benchmark, mean_scores.dataset_revision, mean_scores.task_set_id,
        mean_scores.is_own_hard, mean_scores.n_tasks_wanted, mean_scores.model_run_id,
        model_runs.judging_id, mean_scores.model, mean_scores.model_config_hash,
        mean_scores.vintage, model_runs.first_response_at,
        -- Rounded, because sums of shares differ in the last digits.
        round(
            mean_scores.coverage + coalesce(n_criteria_skipped / sizes.n_criteria_wanted, 0), 12
        ) as covered_share,
        covered_share >= model_runs.bar as is_at_bar
    from intermediate.mean_scores
    inner join intermediate.breakdown_sizes as sizes
        using (task_set_id, breakdown, label, score_name)
    left join skipped_criteria using (task_set_id, model, model_config_hash, vintage)
    inner join intermediate.model_runs using (model_run_id)
    where mean_scores.breakdown = 'all' and mean_scores.is_primary
)

select
    benchmark,
    dataset_revision,
    task_set_id,
    is_own_hard,
    n_tasks_wanted,
    model_run_id,
    judging_id,
    model,
    model_config_hash,
    vintage,
    first_response_at,
    is_at_bar,
    row_number() over (
        partition by task_set_id, judging_id, model, model_config_hash
        -- Among vintages that reach the bar, coverage does not count.
        order by is_at_bar desc, if(is_at_bar, null, covered_share) desc,
            first_response_at desc, vintage desc
    ) = 1 as is_latest
from covered
