"""What a run would do and cost."""

from tasks.plan.estimate import Planned, in_all
from tasks.plan.plan import former_template_notices, is_prepared, plan, plan_analyses, prepare
from tasks.plan.stopping import Expected, plan_stopping

__all__ = [
    "Expected", "Planned", "former_template_notices", "in_all", "is_prepared", "plan", "plan_analyses",
    "plan_stopping", "prepare",
]  # fmt: skip
