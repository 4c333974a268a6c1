"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept as its own state."""

from tasks.judge.judge import judge_batch, plan_verdicts
from tasks.judge.provider_batches import look_after_batches

__all__ = ["judge_batch", "look_after_batches", "plan_verdicts"]
