-- built as: view
-- depends on: intermediate.condition_members
select
    benchmark,
    shared_model,
    condition,
    position,
    model,
    position = 0 as is_baseline,
    baseline,
    baseline_model
from intermediate.condition_members
