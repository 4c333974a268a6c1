"""A workload whose true scores are known: the responses of two models to the samples, and a judge's
decisions on them.

Every harness had the same workload: it called the models and the judge over a socket, with its own
prompts.
"""

import hashlib
import json

from tests.kit import Row
from warehouse import sample_path

MODELS = ("thorough", "brief")
JUDGE = "strict"
TASKS = ("sample-fin-2", "sample-fin-3", "sample-leg-2")
"""Two user turns; reference texts; three user turns."""
UNANSWERED = ("brief", "sample-fin-3")
"""The provider refuses this call."""
UNREADABLE = ("thorough", "sample-leg-2", 4)
"""The judge's reply on this criterion (by its position) of this response cannot be read."""


def rows(benchmark: str = "prbench") -> list[Row]:
    """The rows of the workload from a benchmark's sample, in the benchmark's shape."""
    text = sample_path(benchmark).read_text()
    sample = [json.loads(line) for line in text.splitlines()]
    return [row for row in sample if benchmark != "prbench" or row["task"] in TASKS]


def task_of(row: Row) -> str:
    """The id of a row of either benchmark."""
    return str(row.get("task") or row["prompt_id"])


def titles_of(row: Row) -> list[str]:
    """Return the texts of the criteria, in the order of the rubric."""
    return [
        item.get("title") or item["criterion"]
        for item in row.get("rubric") or row["rubrics"]
    ]


def weights_of(row: Row) -> list[float]:
    """The weights, in the order of the rubric."""
    if "rubrics" in row:
        return [float(item["points"]) for item in row["rubrics"]]
    weights = []
    for item in row["rubric"]:
        annotations = item["annotations"]
        severity = annotations["weight_class"].replace(" ", "_")
        weights.append(float(annotations[f"{severity}_weight"]))
    return weights


def response_to(model: str, task: str) -> str:
    """Return a model's response: several lines, one of which looks like a turn."""
    return (
        f"The {model} answer to {task}.\n\n"
        "user: is this a turn?\nNo, it is <b>text</b> & nothing else."
    )


def is_met(model: str, task: str, position: int) -> bool:
    """Return the judge's decision on a criterion, by its position."""
    byte = hashlib.sha256(f"{model} {task} {position}".encode()).digest()[0]
    return byte % 4 > (0 if model == "thorough" else 2)


def true_score(
    model: str,
    row: Row,
    *,
    hides_failures: bool = False,
) -> float | None:
    """Equation 1 of the paper; None if a decision is missing, unless missing ones count as `not
    met`.
    """
    task = task_of(row)
    has_failed = (model, task) in {UNANSWERED, UNREADABLE[:2]}
    if has_failed and not hides_failures:
        return None
    weights = weights_of(row)
    points = 0.0
    for position, weight in enumerate(weights):
        if is_met(model, task, position) and (model, task, position) != UNREADABLE:
            points += weight
    return points / sum(weight for weight in weights if weight > 0)
