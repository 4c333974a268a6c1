"""Differences for people: the notes on their figure, and decisions in words."""

from collections.abc import Iterator, Sequence

import pytest

from tasks.compare.rows import rows_of
from tasks.compare.sentences import decision
from tasks.figures.rendering import as_text
from tasks.figures.shown.comparisons import DIFF
from tests.tasks.compare.comparisons import ask, filled, judged, tasks_of
from warehouse import Reader

RUBRICS = {f"t{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(20)}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """`mixed` differs from `good` in eight of twenty tasks, `odd` in one."""
    names = list(RUBRICS)
    good = {task: [1, 0.0] for task in names}
    mixed = good | {task: [0, 0.0] for task in names[:6]} | {task: [1, 1.0] for task in names[6:8]}
    with filled(
        tmp_path_factory.mktemp("table"), tasks_of(RUBRICS), judged(good, "good", rubrics=RUBRICS),
        judged(mixed, "mixed", rubrics=RUBRICS), judged(good | {names[1]: [0, 0.0]}, "odd", rubrics=RUBRICS),
    ) as reader:  # fmt: skip
        yield reader


def test_an_interval_of_few_tasks_is_marked_and_what_is_missing_or_corrected_is_explained(reader: Reader) -> None:
    rows = rows_of(ask(reader, "good", "mixed", "odd"))

    mixed, odd = rows
    assert mixed["ci_low"] < mixed["difference"] == -0.1 < mixed["ci_high"]
    assert (mixed["is_small"], mixed["is_significant"]) == (True, False)
    assert (odd["ci_low"], odd["p_value"], odd["p_adjusted"], odd["is_significant"]) == (None, None, None, None)
    assert DIFF.notes is not None
    assert [note.split(" ")[0] for note in DIFF.notes(rows)] == ["no", "odd", "°", "No", "Intervals,", "Based"]
    assert "Difference" in as_text(DIFF.columns, rows).headings


@pytest.mark.parametrize(("by_trial", "said"), [
    ([1.0], "met"), ([0.0, 0.0], "not met"), ([0.5, 0.5], "partly met"), ([1.0, 0.0], "met in 1 of 2 trials"),
    ([0.0, 1.0, 1.0], "met in 2 of 3 trials"), ([0.5, 0.0], "partly met in 1 of 2 trials"),
    ([1.0, 0.5, 0.0], "met in 1 and partly met in 1 of 3 trials"),
])  # fmt: skip
def test_decisions_of_trials_that_disagree_are_counted(by_trial: Sequence[float], said: str) -> None:
    assert decision(by_trial) == said
