-- One row: a model under one of its conditions, as configured, with the
-- baseline that the other conditions are compared with.
--
-- built as: view
-- depends on: condition_sets
select
    benchmark,
    shared_model,
    unnest(condition_names) as condition,
    unnest(condition_models) as model,
    unnest(range(len(condition_names))) as position,
    condition_names[1] as baseline,
    condition_models[1] as baseline_model
from condition_sets
