-- One row: a person whose verdicts are labels, on a data-set revision that a
-- judge has also judged.
--
-- Rankings, menus, coverage and logs do not show these people as judges, unless
-- they are named (`counts_as_judge`). If nobody else graded a revision, people
-- have no row here, so that their leaderboard is shown.
--
-- built as: view
-- depends on: intermediate.judge_configs, intermediate.model_runs, labellers
with graders as (
    select distinct benchmark, dataset_revision, model_runs.judge, model_runs.judge_config_hash,
        is_imported
        and (benchmark, model_runs.judge) in (select (benchmark, judge) from labellers)
            as is_labelling
    from intermediate.model_runs
    inner join intermediate.judge_configs using (judging_id)
)

select
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash
from graders
semi join (from graders where not is_labelling) as judges using (benchmark, dataset_revision)
where is_labelling
