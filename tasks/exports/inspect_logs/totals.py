"""What the samples of a log come to."""

from collections.abc import Mapping
from typing import Any

from tasks.exports.inspect_logs.sample import GRADER
from tasks.exports.inspect_logs.usage import Usage, added


class Totals:
    """Counts samples, those without an answer and those with a score, and adds up their usage."""

    def __init__(self, primary_score: str) -> None:
        self._primary_score = primary_score
        self.n_samples = self.n_failed = self.n_scored = 0
        self.usages: dict[str, Usage] = {}
        self.judged: Usage | None = None
        self.completed_at = ""

    def add(self, sample: Mapping[str, Any]) -> None:
        """Count one sample."""
        self.n_samples += 1
        self.n_failed += sample["error"] is not None
        score = sample["scores"].get(self._primary_score)
        self.n_scored += score is not None and score["reason"] is None
        for name, usage in sample["model_usage"].items():
            self.usages[name] = added([self.usages.get(name), usage]) or {}
        self.judged = added([self.judged, sample["role_usage"].get(GRADER)])
        self.completed_at = max(self.completed_at, sample["completed_at"])
