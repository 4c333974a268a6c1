"""What a run would do and cost."""

from tasks.plan.estimate import Planned, in_all
from tasks.plan.former_templates import former_template_notices
from tasks.plan.plan import plan, plan_analyses
from tasks.plan.preparing import is_prepared, prepare

__all__ = ["Planned", "former_template_notices", "in_all", "is_prepared", "plan", "plan_analyses", "prepare"]
