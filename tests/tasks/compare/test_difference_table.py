"""Differences for people: one table with its notes, whoever shows it, and decisions in words."""

from collections.abc import Iterator, Sequence

import pytest

from tasks.compare.sentences import decision, table_of
from tests.kit import reading
from tests.tasks.compare.comparisons import apart, ask, judged, tasks_of
from warehouse import Reader

RUBRICS = {f"t{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(20)}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """`mixed` differs from `good` in eight of twenty tasks, `odd` in one; `good` has a second, worse trial of one."""
    names = list(RUBRICS)
    good = {task: [1, 0.0] for task in names}
    mixed = good | {task: [0, 0.0] for task in names[:6]} | {task: [1, 1.0] for task in names[6:8]}
    again = {names[0]: [0, 0.0]}
    with reading(
        tmp_path_factory.mktemp("table"), tasks_of(RUBRICS),
        judged(good, "good", rubrics=RUBRICS), judged(again, "good", rubrics=RUBRICS, trial=2),
        judged(mixed, "mixed", rubrics=RUBRICS), judged(good | {names[1]: [0, 0.0]}, "odd", rubrics=RUBRICS),
    ) as reader:  # fmt: skip
        yield reader


def test_an_interval_of_few_tasks_is_marked_and_what_is_missing_or_corrected_is_explained(reader: Reader) -> None:
    table = table_of(ask(reader, "good", "mixed", "odd"))

    mixed, odd = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert str(mixed["95 % interval"]).startswith("-0.")
    assert str(mixed["95 % interval"]).endswith("°")
    assert (mixed["Difference"], mixed["Tasks"], mixed["Significant"]) == ("-0.087", "20 of 20", False)
    assert (odd["95 % interval"], odd["p"], odd["p corrected"], odd["Significant"]) == (
        "too few tasks differ", None, None, None,
    )  # fmt: skip
    assert [note.split(" ")[0] for note in table.notes] == ["°", "No", "Intervals,", "Based"]


def test_a_flip_has_the_decision_of_each_trial(reader: Reader) -> None:
    (flips,) = apart(reader, ask(reader, "good", "odd"))

    assert [(each.task_id, decision(each.first_by_trial), decision(each.second_by_trial)) for each in flips.flips] == [
        ("t01", "met", "not met"), ("t00", "met in 1 of 2 trials", "met"),
    ]  # fmt: skip


@pytest.mark.parametrize(("by_trial", "said"), [
    ([1.0], "met"), ([0.0, 0.0], "not met"), ([0.5, 0.5], "partly met"), ([1.0, 0.0], "met in 1 of 2 trials"),
    ([0.0, 1.0, 1.0], "met in 2 of 3 trials"), ([0.5, 0.0], "partly met in 1 of 2 trials"),
    ([1.0, 0.5, 0.0], "met in 1 and partly met in 1 of 3 trials"),
])  # fmt: skip
def test_decisions_of_trials_that_disagree_are_counted(by_trial: Sequence[float], said: str) -> None:
    assert decision(by_trial) == said
