"""Three models on made-up tasks, one of them clearly worse, and a provider with scripted
verdicts.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from tests.faults.behaviours import criteria_of, prompt_of
from tests.faults.server import (
    Entry,
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import endpoint, good_row, write_jsonl

N_TASKS = 40
N_CRITERIA = 10
BLOCK = 20
SHARES = {
    "good": 8,
    "twin": 8,
    "bad": 1,
}
"""Model -> number of criteria in ten that its responses meet."""


@dataclass
class Script:
    """Scripted verdicts: they depend on the criterion and the model alone; `twin` differs from
    `good` on a few.
    """

    shares: dict[str, int] = field(default_factory=lambda: dict(SHARES))
    version: int = 1
    """It is part of the responses' texts: with another version they are judged again."""

    def __call__(self, request, number: int) -> HttpResponse:
        if not is_judge_request(request):
            text = well_behaved(request, number).text
            return HttpResponse(f"{text} Version {self.version}.")
        prompt = prompt_of(request)
        model = next(name for name in self.shares if f" by {name}." in prompt)
        verdicts = []
        for position, criterion in enumerate(criteria_of(prompt), start=1):
            verdict = {
                "number": position,
                "explanation": "as scripted",
                "criteria_met": _digit(criterion, model) < self.shares[model],
            }
            verdicts.append(verdict)
        return HttpResponse(json.dumps(verdicts))


def mean_score(model: str) -> float:
    """A model's mean score on all tasks: all criteria have the same weight."""
    n_met = 0
    for task_number, point in product(range(N_TASKS), range(N_CRITERIA)):
        n_met += _digit(_title(task_number, point), model) < SHARES[model]
    return n_met / (N_TASKS * N_CRITERIA)


def _title(task_number: int, point: int) -> str:
    return f"Names point {point} of case {task_number}"


def _digit(criterion: str, model: str) -> int:
    digest = hashlib.sha256(criterion.strip().encode()).digest()
    # `twin` is like the others on 19 of 20 criteria.
    differs = model == "twin" and digest[1] % 20 == 0
    return digest[2 if differs else 0] % 10


def write_tasks(path: Path) -> Path:
    """Write a data set of made-up tasks in both fields, and return its path."""
    rows = []
    for number in range(N_TASKS):
        row = good_row(f"task-{number:03}", prompt_0=f"What about case {number}?")
        row["field"] = "Finance" if number % 3 else "Legal"
        for point, criterion in enumerate(row["rubric"]):
            criterion["title"] = _title(number, point)
        rows.append(row)
    return write_jsonl(path, rows)


def settings(
    server: FaultServer,
    data: Path,
    labels: Sequence[str] = tuple(SHARES),
    **changes: Any,
) -> dict[str, Any]:
    """A configuration with these models; a call for each rubric is enough here."""
    judge = endpoint("judge", server.api_base, criteria_per_call=N_CRITERIA)
    return {
        "dataset": {"source": str(data)},
        "models": [endpoint(label, server.api_base) for label in labels],
        "judges": [judge],
        "limits": {"concurrency": 16, "attempts": 2},
        **changes,
    }


def n_samples(entries: Sequence[Entry]) -> Counter[str]:
    """Return the number of requested responses, by model."""
    requests = [entry.request for entry in entries]
    return Counter(
        request["model"] for request in requests if not is_judge_request(request)
    )
