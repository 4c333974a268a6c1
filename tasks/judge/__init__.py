"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept as its own state."""

from tasks.judge.batched import judge_by_provider_batches
from tasks.judge.live import judge_responses, plan_verdicts

__all__ = ["judge_by_provider_batches", "judge_responses", "plan_verdicts"]
