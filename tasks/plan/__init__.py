"""What a run would do and cost."""

from tasks.plan.estimate import Planned, in_all
from tasks.plan.former_templates import former_template_notices
from tasks.plan.plan import plan, plan_analyses
from tasks.plan.preparing import is_prepared, prepare
from tasks.plan.stopping import Expected, plan_stopping

__all__ = [
    "Expected",
    "Planned",
    "former_template_notices",
    "in_all",
    "is_prepared",
    "plan",
    "plan_analyses",
    "plan_stopping",
    "prepare",
]
