-- One row: a judging with verdicts on the criteria of the trees, and a
-- fingerprint of all that is compared under it.
with trees as (
    select bit_xor(hash(field, tree_id)) as basis
    from capability_trees
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

verdicts as (
    select judging_id,
        bit_xor(
            hash(
                judged.model_run_id, judged.task_id, judged.trial,
                judged.criterion_id, judged.weight, judged.value
            )
        ) as basis
    from intermediate.judged_criteria as judged
    inner join intermediate.model_runs using (model_run_id)
    where model_runs.benchmark = $benchmark
        and model_runs.dataset_revision = $dataset_revision
        and model_runs.is_latest
    group by judging_id
)

select
    judgings.judging_id::varchar as judging_id,
    judgings.judge, judgings.judge_config_hash, judgings.template_hash, judgings.grading,
    judgings.judge_trial,
    verdicts.basis::varchar || ' ' || trees.basis::varchar as basis
from verdicts
inner join intermediate.judgings as judgings using (judging_id)
cross join trees
order by all
