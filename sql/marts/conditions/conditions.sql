-- built as: view
-- depends on: condition_sets
select
    benchmark,
    shared_model,
    unnest(condition_names) as condition,
    unnest(range(len(condition_names))) as position,
    unnest(condition_models) as model,
    position = 0 as is_baseline,
    condition_names[1] as baseline,
    condition_models[1] as baseline_model
from condition_sets
