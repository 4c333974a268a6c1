"""Facts of the real hard splits, counted independently of this project."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks.benchmarks.prbench import SEVERITIES, VOCABULARIES, parse_row
from tasks.dataset.source import read_rows
from tasks.rules.records import Criterion, Task
from tests.kit import SHARED_DATA


def real(name: str) -> list[Task]:
    path = SHARED_DATA / "prbench" / name
    if not path.is_file():
        pytest.skip(f"real data are not beside the checkout: {name}")
    return [parse_row(row) for row in read_rows(path)]


@pytest.fixture(scope="module")
def finance_hard() -> list[Task]:
    return real("finance_hard.parquet")


@pytest.fixture(scope="module")
def legal_hard() -> list[Task]:
    return real("legal_hard_37.jsonl")


def criteria_of(tasks: list[Task]) -> list[Criterion]:
    return [criterion for task in tasks for criterion in task.criteria]


def weight_of(criterion: Criterion) -> float:
    return float("nan") if criterion.weight is None else criterion.weight


def test_the_real_splits_have_the_numbers_that_were_counted_from_the_raw_files(
    finance_hard: list[Task], legal_hard: list[Task]
) -> None:
    criteria = criteria_of(finance_hard)
    assert (300, 5085, 30) == (len(finance_hard), len(criteria), max(len(task.criteria) for task in finance_hard))
    assert 364 == sum(weight_of(each) < 0 for each in criteria)
    assert 136 == sum((task.turns or 0) > 1 for task in finance_hard)
    assert 10 == sum(task.has_reference_texts for task in finance_hard)
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


def test_the_vocabulary_knows_the_real_labels_except_a_misspelt_one(
    finance_hard: list[Task], legal_hard: list[Task]
) -> None:
    unknown = [
        label for task in finance_hard + legal_hard for kind, labels_of in KINDS.items()
        for label in labels_of(task) if label not in VOCABULARIES[task.field or ""][kind]
    ]  # fmt: skip

    assert unknown in ([], ["Planning & Forecast"])
