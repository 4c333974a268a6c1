"""`prbench leaderboard` and `diff`: their output for small worlds."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest

from flows.cli.options import ENDINGS
from tasks.rules.text.numbers import number
from tests.flows.conftest import run_on
from tests.kit import Printed, combined, response, stored, written
from tests.tasks.compare.comparisons import judged, tasks_of


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models below zero, one that lacks a trial, and one without verdicts."""
    rubrics = {f"t{i:02d}": [(10, "Accuracy"), (-5, "Risk")] for i in range(60)}
    met: dict[str, Callable[[int], tuple[int, int]]] = {
        "below": lambda i: (i % 10 == 0, i % 3 > 0),
        "alike": lambda i: (i % 10 == 1, i % 3 > 0),
        "good": lambda i: (i % 2, 0),
    }
    decisions = {
        model: {task: of(i) for i, task in enumerate(rubrics)} for model, of in met.items()
    }
    again = {task: values for task, values in decisions["good"].items() if task != "t00"}
    return stored(
        tmp_path_factory.mktemp("uneven"),
        combined(
            tasks_of(rubrics),
            *(judged(of, model, rubrics=rubrics) for model, of in decisions.items()),
            judged(again, "good", rubrics=rubrics, trial=2),
            {"responses": [response("t00", "unheard")]},
        ),
    )


def test_what_clipping_hides_and_which_ranks_are_possible_is_shown(
    uneven: Path, capsys: Printed
) -> None:
    run_here = run_on(uneven, capsys)
    rows = {row["model"]: row for row in run_here.json("leaderboard")}
    shown = run_here("leaderboard", "--wide")
    line = {
        model: next(line for line in shown.splitlines()[2:] if f" {model} " in line)
        for model in rows
    }
    below = rows["below"]

    assert below["mean_score"] == 0
    assert below["ci_low"] == 0
    assert below["ci_high"] == 0
    mean, low, high = (number(below[f"raw_{name}"]) for name in ("mean_score", "ci_low", "ci_high"))
    assert f" {mean} ({low} to {high}) " in line["below"]
    assert (
        "A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means."
        in shown
    )
    assert [
        tuple(rows[model][name] for name in ("rank", "rank_low", "rank_high"))
        for model in ("good", "below", "alike", "unheard")
    ] == [(1, 1, 1), (2, 2, 3), (2, 2, 3), (None, None, None)]
    assert " 2 to 3 " in line["below"]
    assert " 60                      59         60 " in line["good"]
    assert "Not judged on a split by this judge: unheard" in shown
    assert "based on only part of the split" not in shown


MANY = {f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(40)}


def test_differences_that_the_goldens_lack_are_explained_in_sentences(
    tmp_path: Path, capsys: Printed
) -> None:
    models = {
        "good": [1, 0.0],
        "twin": [1, 0.0],
        "fallen": [0, 0.0],
    }
    decided = [
        judged(dict.fromkeys(MANY, values), model, rubrics=MANY) for model, values in models.items()
    ]
    written(tmp_path, combined(tasks_of(MANY), *decided)).publish()
    run_here = run_on(tmp_path, capsys)
    fallen, twin = (run_here("diff", "good", name) for name in ("fallen", "twin"))
    assert "showing the only revision of prbench there" in run_here.err
    why = "no interval, since nearly all tasks change alike, p < 0.001"
    assert f"fallen is 0.500 lower than good on finance ({why}): significant" in fallen
    assert "nearly all tasks change alike" in fallen
    assert "twin and good have the same score on finance: no task differs (40 tasks)" in twin
    assert "0 of 80 criteria flipped" in twin


COMMANDS = (
    "leaderboard",
    "leaderboard --by category",
    "diff good below",
    "figure leaderboard",
    "figure costs",
    "sql --cookbook",
    "sql --describe scores",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_writes_every_format_to_a_file(
    command: str, uneven: Path, tmp_path: Path, capsys: Printed
) -> None:
    run_here = run_on(uneven, capsys)
    paths = {ending: tmp_path / f"rows{ending}" for ending in ENDINGS}
    for path in paths.values():
        run_here(*command.split(), "-o", str(path))

    assert json.loads(paths[".json"].read_text()) == run_here.json(*command.split())
    first = json.loads(paths[".jsonl"].read_text().splitlines()[0])
    assert set(first) <= set(next(csv.reader(paths[".csv"].open(encoding="utf-8-sig"))))
    assert set(first) == set(pq.read_table(paths[".parquet"]).column_names)
    assert openpyxl.load_workbook(paths[".xlsx"]).worksheets[0].max_row > 1
    assert paths[".md"].read_text() == run_here(*command.split(), "--format", "markdown")
    assert run_here(*command.split(), "--wide") == paths[".txt"].read_text()


def test_a_command_with_several_figures_names_those_that_a_file_for_one_table_lacks(
    uneven: Path, tmp_path: Path, capsys: Printed
) -> None:
    run_here = run_on(uneven, capsys)
    run_here("diff", "good", "below", "-o", str(tmp_path / "diff.csv"))

    assert (
        "csv holds one table, diff; an .xlsx or .json file also has diff_categories" in run_here.err
    )


def test_nothing_to_show_is_no_file(uneven: Path, tmp_path: Path, capsys: Printed) -> None:
    run_here = run_on(uneven, capsys)
    line = run_here.refusal("reviews", "-o", str(tmp_path / "reviews.csv"))

    assert "reviews.csv: not written. No criterion has been reviewed yet." in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("leaderboard --model godo", "good"),
        ("status --model belwo", "below"),
        ("diff godo below", "good"),
        ("figure leaderbord", "leaderboard"),
        ("leaderboard --split finanec", "finance"),
        ("leaderboard --score scor", "score"),
        ("leaderboard --by categry", "category"),
        ("figure criteria n_criteri=1", "n_criteria"),
        ("sql --describe scorse", "scores"),
    ],
)
def test_a_mistyped_name_gets_a_hint(
    command: str, hint: str, uneven: Path, capsys: Printed
) -> None:
    run_here = run_on(uneven, capsys)

    assert f"(did you mean `{hint}`?)" in run_here.refusal(*command.split())
