"""Tables of small worlds, such as leaderboards and differences, as text and files."""

import csv
import json
from operator import itemgetter
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest

from flows.cli.main import cli
from flows.cli.options import FORMAT_BY_ENDING
from tasks.figures.shown import FIGURES
from tasks.rules.text.numbers import number
from tests.flows.conftest import run_on
from tests.kit import combined, response, stored, written
from tests.tasks.compare.comparisons import MANY, judged, tasks_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two models below zero, one that lacks a trial, and one without verdicts.

    `run_here` runs commands on it. The first two meet the wanted criterion (10 points)
    in a tenth of the tasks, and the unwanted one (-5) in two thirds: their mean is
    -0.23.
    """
    rubrics = {
        f"t{index:02d}": [(10, "Accuracy"), (-5, "Risk")] for index in range(60)
    }
    below_zero = {}
    alike = {}
    good = {}
    for index, task in enumerate(rubrics):
        below_zero[task] = [index % 10 == 0, index % 3 > 0]
        alike[task] = [index % 10 == 1, index % 3 > 0]
        good[task] = [index % 2, 0]
    without_first = dict(list(good.items())[1:])
    rows = combined(
        tasks_of(rubrics),
        judged(below_zero, "below", rubrics=rubrics),
        judged(alike, "alike", rubrics=rubrics),
        judged(good, "good", rubrics=rubrics),
        judged(without_first, "good", rubrics=rubrics, trial=2),
        {"responses": [response("t00", "unheard")]},
    )
    return stored(tmp_path_factory.mktemp("uneven"), rows)


def line_of(model: str, table: str) -> str:
    """The line of a table about a model, below its headings."""
    return next(line for line in table.splitlines()[2:] if f" {model} " in line)


def test_a_mean_below_0_is_shown_as_0_beside_the_unclipped_one(run_here):
    rows = {row["model"]: row for row in run_here.json("leaderboard")}
    table = run_here("leaderboard", "--wide")

    row = rows["below"]
    assert row["mean_score"] == 0
    assert row["ci_low"] == 0
    assert row["ci_high"] == 0
    mean = number(row["raw_mean_score"])
    low = number(row["raw_ci_low"])
    high = number(row["raw_ci_high"])
    assert f" {mean} ({low} to {high}) " in line_of("below", table)


def test_possible_ranks_are_those_of_the_unclipped_means(run_here):
    rows = run_here.json("leaderboard")
    table = run_here("leaderboard", "--wide")

    row_cells = itemgetter("model", "rank", "rank_low", "rank_high")
    assert sorted(map(row_cells, rows)) == [
        ("alike", 2, 2, 3),
        ("below", 2, 2, 3),
        ("good", 1, 1, 1),
        ("unheard", None, None, None),
    ]
    assert " 2 to 3 " in line_of("below", table)


def test_a_model_that_lacks_a_trial_or_verdicts_is_named(run_here):
    table = run_here("leaderboard", "--wide")

    [good] = [row for row in run_here.json("leaderboard") if row["model"] == "good"]
    assert good["n_tasks"] == 60
    assert good["n_tasks_full"] == 59  # one task lacks its second trial
    assert good["n_tasks_ranked"] == 60
    assert "Not judged on a split by this judge: unheard" in table
    assert "based on only part of the split" not in table


def test_a_significant_difference_and_an_equality_are_explained_in_sentences(
    tmp_path, capsys
):
    rows = combined(
        tasks_of(MANY),
        judged({task: [1, 0] for task in MANY}, "good", rubrics=MANY),
        judged({task: [1, 0] for task in MANY}, "twin", rubrics=MANY),
        judged({task: [0, 0] for task in MANY}, "fallen", rubrics=MANY),
    )
    written(tmp_path, rows).publish()
    run_here = run_on(tmp_path, capsys)

    comparison_with_fallen = run_here("diff", "good", "fallen")
    comparison_with_twin = run_here("diff", "good", "twin")

    assert "showing the only revision of prbench there" in run_here.err
    reason = "no interval, since nearly all tasks change alike, p < 0.001"
    difference = f"fallen is 0.500 lower than good on finance ({reason}): significant"
    equality = (
        "twin and good have the same score on finance: no task differs (30 tasks)"
    )
    assert difference in comparison_with_fallen
    assert equality in comparison_with_twin
    assert "0 of 60 criteria flipped" in comparison_with_twin


COMMANDS = (
    "leaderboard",
    "leaderboard --by category",
    "diff good below",
    "figure costs",
    "sql --cookbook",
    "sql --describe scores",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_writes_every_format_to_a_file(command, run_here, tmp_path):
    paths = {ending: tmp_path / f"rows{ending}" for ending in FORMAT_BY_ENDING}
    for path in paths.values():
        run_here(*command.split(), "-o", path)

    row = json.loads(paths[".jsonl"].read_text().splitlines()[0])
    assert json.loads(paths[".json"].read_text()) == run_here.json(*command.split())
    assert (
        set(next(csv.reader(paths[".csv"].open(encoding="utf-8-sig")))) >= row.keys()
    )
    assert set(pq.read_table(paths[".parquet"]).column_names) == row.keys()
    assert openpyxl.load_workbook(paths[".xlsx"]).worksheets[0].max_row > 1
    markdown = run_here(*command.split(), "--format", "markdown")
    assert paths[".md"].read_text() == markdown
    assert paths[".txt"].read_text() == run_here(*command.split(), "--wide")


def test_a_command_with_several_figures_names_those_that_a_file_for_one_table_lacks(
    run_here,
    tmp_path,
):
    run_here("diff", "good", "below", "-o", tmp_path / "diff.csv")

    sentence = (
        "csv holds one table, diff; an .xlsx or .json file also has diff_categories"
    )
    assert sentence in run_here.err


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("judge_agreement --by nope", "--by nope: must be one of all, category, "),
        (
            "conditions breakdown=topic",
            "breakdown=topic: must be one of all, category",
        ),
        ("topics breakdown=nope", "nope: no such breakdown; prbench has category, "),
        ("length_models level=tasks", "level=tasks: must be one of models"),
        ("criteria n_criteria=0", "n_criteria=0: must be at least 1"),
        ("criteria n_criteria=5 n_criteria=[", "must be like n_criteria="),
        ("cascade", "cascade: give cheap=NAME and strong=NAME"),
        ("people_agreement", "people_agreement: give people=NAME"),
        ("weaknesses model=nobody", "--model nobody: not found"),
    ],
)
def test_a_figure_refuses_a_value_that_a_parameter_cannot_have(
    parameters,
    message,
    run_here,
):
    assert message in run_here.refusal("figure", *parameters.split())


@pytest.mark.parametrize(
    ("command", "parameter", "figure"),
    [
        ("judges", "breakdown", "judge_agreement"),
        ("judges", "breakdown", "people_agreement"),
        ("criteria", "which", "criteria"),
    ],
)
def test_a_figure_has_the_choices_of_its_command(command, parameter, figure):
    [option] = [
        option for option in cli.commands[command].params if option.name == parameter
    ]

    choices = set(FIGURES[figure].choices[parameter])
    assert choices - {"all"} == set(option.type.choices)


def test_a_comparison_without_flipped_criteria_does_not_say_that_none_flipped(
    run_here,
):
    command = ("diff", "good", "below", "--flips", "0")

    assert "No criterion flipped" not in run_here(*command)
    assert run_here.json(*command)["flips"] == []


def test_an_empty_result_writes_no_file(run_here, tmp_path):
    line = run_here.refusal("reviews", "-o", tmp_path / "reviews.csv")

    assert "reviews.csv: not written. No criterion has been reviewed yet." in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("leaderboard --model godo", "good"),
        ("leaderboard --split finanec", "finance"),
        ("leaderboard --score scor", "score"),
        ("leaderboard --by categry", "category"),
        ("figure criteria n_criteri=1", "n_criteria"),
    ],
)
def test_a_mistyped_name_gets_a_hint(command, hint, run_here):
    assert f"(did you mean `{hint}`?)" in run_here.refusal(*command.split())
