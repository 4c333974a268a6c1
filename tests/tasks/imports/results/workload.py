"""A workload whose true scores are known: what two models answer to the samples, and what a judge decides on it.

Every harness is given the same: it asks the models and the judge over a socket, with its own prompts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.faults.answers import Answer
from tests.faults.content import Request, messages_of, text_of
from warehouse import sample_path

MODELS = ("thorough", "brief")
JUDGE = "strict"
TASKS = ("sample-fin-2", "sample-fin-3", "sample-leg-2")
"""One with two user turns, one with reference texts, one with three user turns."""
UNANSWERED = ("brief", "sample-fin-3")
"""The provider refuses this call."""
UNREADABLE = ("thorough", "sample-leg-2", 4)
"""The judge's reply on this criterion (by its place) of this answer cannot be read."""


def rows(benchmark: str = "prbench") -> list[dict[str, Any]]:
    """The rows of the sample in its benchmark's shape, those of the workload."""
    text = sample_path(benchmark).read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    return [row for row in found if benchmark != "prbench" or row["task"] in TASKS]


def task_of(row: Mapping[str, Any]) -> str:
    """The id of a row of either benchmark."""
    return str(row.get("task") or row["prompt_id"])


def titles_of(row: Mapping[str, Any]) -> list[str]:
    """What is judged, in the order of the rubric."""
    return [item.get("title") or item["criterion"] for item in row.get("rubric") or row["rubrics"]]


def weights_of(row: Mapping[str, Any]) -> list[float]:
    """The weights, in the order of the rubric."""
    if "rubrics" in row:
        return [float(item["points"]) for item in row["rubrics"]]
    named = [item["annotations"] for item in row["rubric"]]
    return [float(item[f"{item['weight_class'].replace(' ', '_')}_weight"]) for item in named]


def answer(model: str, task: str) -> str:
    """What a model answers: several lines, in one of them what looks like a turn."""
    return f"The {model} answer to {task}.\n\nuser: is this a turn?\nNo, it is <b>text</b> & nothing else."


def is_met(model: str, task: str, place: int) -> bool:
    """What the judge decides on a criterion, by its place."""
    drawn = hashlib.sha256(f"{model} {task} {place}".encode()).digest()[0]
    return drawn % 4 > (0 if model == "thorough" else 2)


def true_score(model: str, row: Mapping[str, Any], *, hides_failures: bool = False) -> float | None:
    """Equation 1 of the paper; None where a decision is missing, unless that is taken for `not met`."""
    task = task_of(row)
    if not hides_failures and ((model, task) == UNANSWERED or (model, task) == UNREADABLE[:2]):
        return None
    met = [is_met(model, task, i) and (model, task, i) != UNREADABLE for i in range(len(titles_of(row)))]
    weights = weights_of(row)
    points = sum(weight for weight, counts in zip(weights, met, strict=True) if counts)
    return points / sum(weight for weight in weights if weight > 0)


class Provider:
    """The behaviour of a provider that plays both models and the judge."""

    def __init__(self, given: Sequence[Mapping[str, Any]]) -> None:
        self._rows = given
        self._places = {title: (task_of(row), place) for row in given for place, title in enumerate(titles_of(row))}

    def __call__(self, request: Request, _number: int) -> Answer:
        """Answer a conversation, or judge the criterion that stands in a prompt."""
        prompt, model = "\n".join(map(text_of, messages_of(request))), str(request["model"]).rpartition("/")[2]
        if model == JUDGE:
            return self._judged(prompt)
        task = next(task_of(row) for row in self._rows if _last_prompt(row) in prompt)
        if (model, task) == UNANSWERED:
            return Answer(status=400, error={"message": "The request was refused.", "type": "invalid_request_error"})
        return Answer(answer(model, task))

    def _judged(self, prompt: str) -> Answer:
        title = max((title for title in self._places if title in prompt), key=len)
        task, place = self._places[title]
        model = next((model for model in MODELS if answer(model, task) in prompt), None)
        if model is None:
            return Answer(json.dumps({"explanation": "There is no answer.", "criteria_met": False}, indent=2))
        if (model, task, place) == UNREADABLE:
            return Answer("I cannot decide that.")
        said = {"explanation": f"By {model}, place {place}.", "criteria_met": is_met(model, task, place)}
        return Answer(json.dumps(said, indent=2))


def _last_prompt(row: Mapping[str, Any]) -> str:
    if "prompt" in row:
        return str(row["prompt"][-1]["content"])
    return str(next(row[f"prompt_{i}"] for i in range(9, -1, -1) if row.get(f"prompt_{i}")))
