-- People who label are no main judge, as in reports. Ties are broken by the judge's
-- name, so that the main judge stays the same; of its configurations, the one that
-- was used last is the main one.
--
-- built as: view
-- depends on: intermediate.judge_configs, intermediate.model_runs,
--     intermediate.people_who_label, leaderboard
with scored as (
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial,
        sum(n_tasks)::bigint as n_tasks
    from leaderboard
    where is_primary
    group by all
),

used as (
    select benchmark, dataset_revision, judging_id, max(last_verdict_at) as last_verdict_at
    from intermediate.model_runs
    group by all
)

select
    scored.benchmark,
    scored.dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    judge_configs.rubric,
    judge_configs.is_imported,
    people.judge is not null as is_person,
    scored.n_tasks,
    last_verdict_at,
    row_number() over (
        partition by scored.benchmark, scored.dataset_revision
        order by people.judge is not null, scored.n_tasks desc, judge, judge_trial,
            last_verdict_at desc, grading, template_hash, judge_config_hash
    ) = 1 as is_main
from scored
inner join intermediate.judge_configs
    using (judge, judge_config_hash, template_hash, grading, judge_trial)
inner join used using (benchmark, dataset_revision, judging_id)
left join intermediate.people_who_label as people
    using (benchmark, dataset_revision, judge, judge_config_hash)
