-- name: benchmarks
-- The benchmarks of the warehouse, by data-set revision, with counts of their
-- data; the one that was judged last is first.
with task_counts as (
    select benchmark, dataset_revision,
        count(*) filter (is_admitted) as n_tasks,
        coalesce(sum(n_criteria) filter (is_admitted), 0)::bigint as n_criteria
    from tasks
    group by benchmark, dataset_revision
),

response_counts as (
    select benchmark, dataset_revision, count(distinct model) as n_models
    from responses
    group by benchmark, dataset_revision
),

judge_counts as (
    select benchmark, dataset_revision,
        count(distinct judge) filter (
            counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash)
        ) as n_judges,
        max(created_at) as judged_at
    from verdicts
    group by benchmark, dataset_revision
)

select benchmark, dataset_revision, task_counts.n_tasks, task_counts.n_criteria,
    coalesce(response_counts.n_models, 0) as n_models,
    coalesce(judge_counts.n_judges, 0) as n_judges,
    judge_counts.judged_at
from task_counts
left join response_counts using (benchmark, dataset_revision)
left join judge_counts using (benchmark, dataset_revision)
order by benchmark, judged_at desc nulls last, dataset_revision;

-- name: leaders
-- The best models of a revision on each split, in their current vintages, under the
-- judge configuration with most results; an imported one or a binary reading is
-- used only if there is no other.
--
-- with: revision/revision_leaderboard
with chosen as (
    select judge, judge_config_hash, template_hash, grading, judge_trial
    from revision_leaderboard
    where is_primary
        and counts_as_judge([], benchmark, dataset_revision, judge, judge_config_hash)
        and not list_contains($hidden_judges, judge)
    group by judge, judge_config_hash, template_hash, grading, judge_trial
    order by judge_config_hash = 'imported', grading = 'ternary_as_binary', sum(n_tasks) desc,
        judge, judge_trial, grading, template_hash, judge_config_hash
    limit 1
)

select split, latest_rank as rank, model, mean_score, ci_low, ci_high, n_tasks, judge
from revision_leaderboard
inner join chosen using (judge, judge_config_hash, template_hash, grading, judge_trial)
where is_primary
    and is_latest
    and latest_rank <= $most
order by split, latest_rank, model, model_config_hash;
