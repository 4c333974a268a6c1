-- built as: view
-- depends on: staging.condition_members
select benchmark, shared_model, condition, position, model,
    position = 0 as is_baseline,
    baseline, baseline_model
from staging.condition_members
