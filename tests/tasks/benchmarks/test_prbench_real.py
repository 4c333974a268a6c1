"""Known answers for the real hard splits (facts of the data set, counted independently of this project)."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks.benchmarks.prbench import SEVERITIES, VOCABULARIES
from tasks.rules.records import Criterion, Task

FACTS: dict[str, tuple[int, Callable[[list[Task]], int]]] = {
    "tasks": (300, len),
    "criteria": (5085, lambda tasks: len(criteria_of(tasks))),
    "most criteria": (30, lambda tasks: max(len(task.criteria) for task in tasks)),
    "tasks under 10 criteria": (7, lambda tasks: sum(len(task.criteria) < 10 for task in tasks)),
    "negative criteria": (364, lambda tasks: sum(weight_of(c) < 0 for c in criteria_of(tasks))),
    "tasks with a negative criterion": (143, lambda tasks: sum(min(weights_of(task)) < 0 for task in tasks)),
    "multi-turn tasks": (136, lambda tasks: sum((task.turns or 0) > 1 for task in tasks)),
    "tasks with reference texts": (10, lambda tasks: sum(task.has_reference_texts for task in tasks)),
    "reference texts after the first turn": (
        0, lambda tasks: sum(len(turn.reference_texts) for task in tasks for turn in task.conversation[1:])
    ),
}  # fmt: skip


def criteria_of(tasks: list[Task]) -> list[Criterion]:
    return [criterion for task in tasks for criterion in task.criteria]


def weight_of(criterion: Criterion) -> float:
    return float("nan") if criterion.weight is None else criterion.weight


def weights_of(task: Task) -> list[float]:
    return [weight_of(criterion) for criterion in task.criteria]


@pytest.mark.parametrize("fact", FACTS)
def test_the_real_finance_split_is_read_as_what_it_is(finance_hard: list[Task], fact: str) -> None:
    wanted, count = FACTS[fact]

    assert wanted == count(finance_hard)


def test_the_real_legal_rows_are_read_as_what_they_are(legal_hard: list[Task]) -> None:
    assert (37, 721) == (len(legal_hard), len(criteria_of(legal_hard)))


def test_every_real_weight_lies_in_the_band_of_its_class(finance_hard: list[Task], legal_hard: list[Task]) -> None:
    bands = [(SEVERITIES[c.severity or ""], weight_of(c)) for c in criteria_of(finance_hard + legal_hard)]
    outside = [(band, weight) for band, weight in bands if not band[0] <= weight <= band[1]]

    assert [] == outside


def test_every_real_conversation_is_whole_and_has_as_many_user_turns_as_it_says(
    finance_hard: list[Task], legal_hard: list[Task]
) -> None:
    patterns = [(task.turn_pattern, task.turns) for task in finance_hard + legal_hard]

    assert [("u" + "au" * ((turns or 0) - 1), turns) for _, turns in patterns] == patterns


KINDS: dict[str, Callable[[Task], Any]] = {
    "category": lambda task: [criterion.category for criterion in task.criteria],
    "decision_type": lambda task: task.decision_types,
    "economic_pathway": lambda task: task.economic_pathways,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_knows_the_real_labels_but_the_one_that_is_misspelt(
    finance_hard: list[Task], legal_hard: list[Task], kind: str
) -> None:
    unknown = [
        label
        for task in finance_hard + legal_hard
        for label in KINDS[kind](task)
        if label not in VOCABULARIES[task.field or ""][kind]
    ]

    assert set(unknown) <= {"Planning & Forecast"}
    assert len(unknown) <= 1
