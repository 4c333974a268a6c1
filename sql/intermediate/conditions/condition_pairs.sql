-- One row: a model under a condition and under its baseline, both in one
-- vintage under one judge configuration.
--
-- If a label had several configurations, the one that was sampled last counts.
--
-- built as: view
-- depends on: conditions, intermediate.current_model_runs
with latest as (
    select *
    from intermediate.current_model_runs
    qualify row_number() over (
        partition by ranking_id, model
        order by last_response_at desc, model_config_hash desc
    ) = 1
)

select
    hash(shared_model, condition, changed.model_run_id, baseline.model_run_id) as pair_id,
    -- Both samplings, under any judge.
    hash(
        changed.benchmark, changed.dataset_revision, changed.vintage, changed.model,
        changed.model_config_hash, baseline.model, baseline.model_config_hash
    ) as samplings_id,
    members.shared_model,
    members.condition,
    members.position,
    members.baseline,
    changed.model_run_id,
    changed.ranking_id,
    changed.judging_id,
    benchmark,
    changed.dataset_revision,
    changed.judge,
    changed.judge_config_hash,
    changed.template_hash,
    changed.grading,
    changed.judge_trial,
    changed.vintage,
    model,
    changed.model_config_hash,
    changed.n_trials,
    baseline.model_run_id as baseline_run_id,
    baseline.model as baseline_model,
    baseline.model_config_hash as baseline_config_hash,
    baseline.n_trials as baseline_n_trials,
    row_number() over (
        partition by changed.dataset_revision, changed.judging_id, shared_model, condition
        order by changed.is_latest and baseline.is_latest desc,
            changed.first_response_at desc, changed.vintage desc
    ) = 1 as is_latest
from conditions as members
inner join latest as changed using (benchmark, model)
inner join latest as baseline
    on members.baseline_model = baseline.model and changed.ranking_id = baseline.ranking_id
where members.position > 0
