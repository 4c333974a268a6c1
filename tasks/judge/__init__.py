"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept as its own state."""

from tasks.judge.judge import judge_responses, plan_verdicts
from tasks.judge.provider_batches import judge_by_provider_batches

__all__ = ["judge_by_provider_batches", "judge_responses", "plan_verdicts"]
