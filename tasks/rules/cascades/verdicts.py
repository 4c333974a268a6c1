"""Verdicts of two judges on the same criteria, as arrays."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.cascades.when import Facts, Flags, Floats

Places = NDArray[np.int64]


@dataclass(frozen=True)
class PairedVerdicts:
    """Criteria of responses that a strong judge has decided and a cheap one was asked about.

    Attributes:
        facts: what the cheap judge said, and what a rule to escalate looks at.
        strong: the strong judge's values, shape (n_criteria,): 1, 0.5 or 0.
        task: place of the criterion's task in `tasks`.
        response: place of its response.
        tasks: the ids of the tasks.
        task_of_response, model_of_response: places in `tasks` and `models`, shape (n_responses,).
        models: names of the models.
        offset, denominator: of the response's primary score, (points + offset) / denominator; NaN where the response
            has criteria that are not here.
        has_second: whether the cheap judge was asked a second time, shape (n_criteria,).
    """

    facts: Facts
    strong: Floats
    task: Places
    response: Places
    tasks: tuple[str, ...]
    task_of_response: Places
    model_of_response: Places
    models: tuple[str, ...]
    offset: Floats
    denominator: Floats
    has_second: Flags

    def of_tasks(self, chosen: Flags) -> "PairedVerdicts":
        """Only the criteria of some tasks; places stay as they are.

        Args:
            chosen: shape (n_tasks,).
        """
        here = chosen[self.task]
        facts = Facts(
            self.facts.first[here], self.facts.weights[here], self.facts.categories[here], self.facts.confidence[here]
        )
        denominator = np.where(chosen[self.task_of_response], self.denominator, np.nan)
        return replace(
            self, facts=facts, strong=self.strong[here], task=self.task[here], response=self.response[here],
            denominator=denominator, has_second=self.has_second[here],
        )  # fmt: skip

    def scores(self, values: NDArray[Any]) -> Floats:
        """Scores of the responses, shape (n_responses,), when criteria have these values; NaN where one is missing."""
        points = np.bincount(self.response, values * self.facts.weights, minlength=len(self.denominator))
        return np.asarray((points + self.offset) / self.denominator)
