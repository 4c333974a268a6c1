"""`prbench leaderboard` and `diff`: their output for small worlds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.rules.text.numbers import number
from tests.flows.conftest import run_on
from tests.kit import Printed, combined, response, stored, written
from tests.tasks.compare.comparisons import judged, tasks_of


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models below zero, one that lacks a trial, and one without verdicts."""
    rubrics = {f"t{i:02d}": [(10, "Accuracy"), (-5, "Risk")] for i in range(60)}
    met: dict[str, Callable[[int], tuple[int, int]]] = {
        "below": lambda i: (i % 10 == 0, i % 3 > 0), "alike": lambda i: (i % 10 == 1, i % 3 > 0),
        "good": lambda i: (i % 2, 0),
    }  # fmt: skip
    decisions = {model: {task: of(i) for i, task in enumerate(rubrics)} for model, of in met.items()}
    again = {task: values for task, values in decisions["good"].items() if task != "t00"}
    return stored(tmp_path_factory.mktemp("uneven"), combined(
        tasks_of(rubrics), *(judged(of, model, rubrics=rubrics) for model, of in decisions.items()),
        judged(again, "good", rubrics=rubrics, trial=2), {"responses": [response("t00", "unheard")]},
    ))  # fmt: skip


def test_what_clipping_hides_and_which_ranks_are_possible_is_shown(uneven: Path, capsys: Printed) -> None:
    run_here = run_on(uneven, capsys)
    rows = {row["model"]: row for row in run_here.json("leaderboard")}
    shown = run_here("leaderboard")
    line = {model: next(line for line in shown.splitlines() if f" {model} " in line and "│" in line) for model in rows}
    below = rows["below"]

    assert (0, 0, 0) == (below["mean_score"], below["ci_low"], below["ci_high"])
    mean, low, high = (number(below[f"raw_{name}"]) for name in ("mean_score", "ci_low", "ci_high"))
    assert f" {mean} ({low} to {high}) │" in line["below"]
    assert "A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means." in shown
    assert [(1, 1, 1), (2, 2, 3), (2, 2, 3), (None, None, None)] == [
        tuple(rows[model][name] for name in ("rank", "rank_low", "rank_high"))
        for model in ("good", "below", "alike", "unheard")
    ]
    assert " 2 to 3 │" in line["below"]
    assert " 60 │                     59 │        60 │" in line["good"]
    assert "Not judged on a split by this judge: unheard" in shown
    assert "based on only part of the split" not in shown


MANY = {f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(40)}


def test_differences_that_the_goldens_lack_are_explained_in_sentences(tmp_path: Path, capsys: Printed) -> None:
    models = {"good": [1, 0.0], "twin": [1, 0.0], "fallen": [0, 0.0]}
    decided = [judged(dict.fromkeys(MANY, values), model, rubrics=MANY) for model, values in models.items()]
    written(tmp_path, combined(tasks_of(MANY), *decided)).publish()
    run_here = run_on(tmp_path, capsys)
    fallen, twin = (run_here("diff", "good", name) for name in ("fallen", "twin"))
    assert "showing the only revision of prbench there" in run_here.err
    why = "no interval, since nearly all tasks change alike, p < 0.001"
    assert f"fallen is 0.500 lower than good on finance ({why}): significant" in fallen
    assert "nearly all tasks change alike" in fallen
    assert "twin and good have the same score on finance: no task differs (40 tasks)" in twin
    assert "0 of 80 criteria flipped" in twin
