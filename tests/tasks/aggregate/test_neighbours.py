"""Changes of verdicts between arrangements of criteria in calls, in the marts, counted by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Rows, admitted, combined, criterion, reading, response, row, verdict


def arranged(task_id: str, value: float, arrangement: str, position: int = 1, n_in_call: int = 1) -> dict[str, Any]:
    """The verdict of `a-judge` on the criterion of a task in an arrangement."""
    of_task = verdict(response(task_id), criterion(task_id, 0, 5), value)
    columns = ("response_id", "task_id", "criterion_id", "criterion_hash", "value", "status")
    return row(
        "neighbour_verdicts",
        verdict_id=f"{task_id} {arrangement}",
        arrangement=arrangement,
        position_in_call=position,
        n_in_call=n_in_call,
        **{name: of_task[name] for name in columns},
    )


def tasks(task_ids: Sequence[str]) -> Rows:
    """Tasks of one criterion with one response each."""
    return combined(
        admitted(task_ids),
        {"criteria": [criterion(task_id, 0, 5) for task_id in task_ids]},
        {"responses": [response(task_id) for task_id in task_ids]},
    )


@pytest.mark.parametrize("is_judged", [False, True])
def test_agreement_needs_one_other_grader_and_no_verdict_of_the_judge_itself(is_judged: bool, tmp_path: Path) -> None:
    task_ids = ("t0", "t1")
    alone = [arranged(task_id, 1.0, "alone") for task_id in task_ids]
    grouped = [arranged("t0", 1.0, "grouped", 1, 2), arranged("t1", 0.0, "grouped", 2, 2)]
    graders = ("other", "a-judge") if is_judged else ("other",)
    verdicts = [
        verdict(response(task_id), criterion(task_id, 0, 5), 1.0, judge=judge)
        for judge in graders
        for task_id in task_ids
    ]

    with reading(tmp_path, tasks(task_ids), {"neighbour_verdicts": alone + grouped, "verdicts": verdicts}) as reader:
        effects = reader.rows("from neighbour_effects where breakdown = 'all' order by measure_of desc")

    met, agreement = effects
    assert met["measure_of"] == "met"
    assert agreement["measure_of"] == "agreement with other"
    assert agreement["n"] == 2
    assert agreement["before"] == 1.0
    assert agreement["after"] == 0.5


THIRDS = {2: "", 3: "fml", 4: "fmll", 5: "fmmll", 6: "ffmmll", 7: "ffmmlll"}
"""Number of criteria in a call -> the third of each position: first, middle or last; fewer than three have none."""


def test_a_position_belongs_to_the_third_of_its_call(tmp_path: Path) -> None:
    calls = {f"{position} of {n}": (position, n) for n in THIRDS for position in range(1, n + 1)}
    alone = [arranged(task_id, 0.0, "alone") for task_id in calls]
    grouped = [arranged(task_id, 1.0, "grouped", *call) for task_id, call in calls.items()]

    with reading(tmp_path, tasks(list(calls)), {"neighbour_verdicts": alone + grouped}) as reader:
        rows = reader.rows("from intermediate.neighbour_changes where breakdown = 'position'")

    names = {"f": "first third", "m": "middle third", "l": "last third"}
    expected = {
        f"{position} of {n}": names[letter]
        for n, letters in THIRDS.items()
        for position, letter in enumerate(letters, start=1)
    }
    assert {each["task_id"]: each["label"] for each in rows} == expected
