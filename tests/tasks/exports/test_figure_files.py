"""Figures as files for spreadsheets: CSV with explained columns, and workbooks."""

import csv
import io
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tasks.benchmarks import load_benchmark
from tasks.exports.figure_files import Sheet, figures_as_workbook, workbook, write_csv
from tasks.figures.figure import Figure
from tasks.figures.scope import Scope
from tasks.figures.shown import FIGURES
from tasks.figures.shown.leaderboard import LEADERBOARD, board_parameters, leaderboard
from tasks.rules.errors import PipelineError
from tests.kit import Row
from warehouse import Warehouse

FORMULA = '=HYPERLINK("http://x","y")'
CHOICES = [
    {},
    {"vintage": "all"},
    {"is_severity": True},
    {"is_hard": True},
    *({"by": kind} for kind in load_benchmark("prbench").common_breakdowns),
]


ODD_ROW = {
    "model": FORMULA,
    "judge": "-3 %",
    "vintage": "2026-11-22",
    "split": "plain",
    "n_tasks": 7,
    "mean_score": -0.25,
    "is_complete": True,
    "ci_low": None,
    "selections": ["a", "b"],
    "first_response_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "created_at": date(2026, 1, 2),
}
"""A row that has every kind of value."""


def opened(*parts: tuple[Figure, list[Row]], **key: str) -> Any:
    """The workbook of figures."""
    content = figures_as_workbook(key, parts)
    return openpyxl.load_workbook(io.BytesIO(content))


def columns_of(sheet: Any) -> list[str]:
    return [cell.value for cell in sheet[1]]


def lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.reader(opened))


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_leaderboard_column_is_explained(choice, outcomes_job, tmp_path):
    rows = leaderboard(outcomes_job, **choice)
    if not rows:
        # Without a hard subset or enough labels, a leaderboard has no rows, but the same columns.
        with Warehouse(outcomes_job.warehouse).reader() as reader:
            scope = Scope(outcomes_job, reader, is_hard=choice.get("is_hard", False))
            query = scope.query_of(
                LEADERBOARD, board_parameters(scope, choice.get("by"))
            )
            rows = [dict.fromkeys(reader.table(query)[0])]
    write_csv(outcomes_job.key, LEADERBOARD, rows, tmp_path / "board.csv")

    heading, *meanings = lines(tmp_path / "board-columns.csv")
    assert heading == ["column", "meaning"]
    assert [name for name, _ in meanings] == lines(tmp_path / "board.csv")[0]
    assert [name for name, meaning in meanings if len(meaning) < 10] == []


def test_csv_keeps_numbers_and_dates_and_marks_formulas_alone(tmp_path):
    write_csv({}, LEADERBOARD, [ODD_ROW], tmp_path / "odd.csv")

    _, values = lines(tmp_path / "odd.csv")
    assert values == [
        f"'{FORMULA}",
        "'-3 %",
        "2026-11-22",
        "plain",
        "7",
        "-0.25",
        "True",
        "",
        "a, b",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02",
    ]


def test_excel_has_each_value_in_its_type_and_no_formula():
    sheet = opened((LEADERBOARD, [ODD_ROW]))["leaderboard"]

    cells = {}
    for name, cell in zip(columns_of(sheet), sheet[2], strict=True):
        cells[name] = (
            cell.value,
            cell.data_type,
            bool(cell.quotePrefix),
        )
    assert cells == {
        "model": (FORMULA, "s", True),
        "judge": ("-3 %", "s", True),
        "vintage": ("2026-11-22", "s", False),
        "split": ("plain", "s", False),
        "n_tasks": (7, "n", False),
        "mean_score": (-0.25, "n", False),
        "is_complete": (True, "b", False),
        "ci_low": (None, "n", False),
        "selections": ("a, b", "s", False),
        "first_response_at": (
            datetime(2026, 1, 2, 3, 4, 5),
            "d",
            False,
        ),
        "created_at": (
            datetime(2026, 1, 2),
            "d",
            False,
        ),
    }


def test_headings_are_no_formulas_and_hidden_characters_of_a_workbook_are_visible(
    tmp_path,
):
    row = {FORMULA: "a\u202eb"}
    write_csv({}, LEADERBOARD, [row], tmp_path / "odd.csv")

    heading, values = lines(tmp_path / "odd.csv")
    sheet = opened((LEADERBOARD, [row]))["leaderboard"]
    assert heading == [f"'{FORMULA}"]
    assert values == ["a\u202eb"]
    assert sheet.cell(1, 1).data_type == "s"
    assert sheet.cell(2, 1).value == r"a\u202eb"


def test_a_workbook_has_the_columns_of_the_figure_first_and_hashes_on_the_second_sheet(
    outcomes_job,
):
    rows = leaderboard(outcomes_job)
    book = opened((LEADERBOARD, rows), **outcomes_job.key)

    names = columns_of(book.worksheets[0])
    hash_names = columns_of(book.worksheets[1])
    declared = [column.name for column in LEADERBOARD.columns]
    keys = {"row", "benchmark", "dataset_revision", "model_config_hash"}
    assert book.sheetnames == ["leaderboard", "leaderboard hashes", "columns"]
    assert names[: len(declared)] == declared
    assert not [name for name in names if name.endswith("_hash")]
    assert keys <= set(hash_names)
    assert set(rows[0]) <= {*names, *hash_names}
    assert book.worksheets[1]["A2"].value == 2  # below the headings


def test_numbers_of_a_workbook_are_whole_and_only_their_format_rounds():
    row = {
        "model": "a",
        "mean_score": 0.123456789012,
        "coverage": 0.98765,
        "cost_usd": 12.3456,
        "rank": 1,
    }

    sheet = opened((LEADERBOARD, [row])).worksheets[0]

    cells = dict(zip(columns_of(sheet), sheet[2], strict=True))
    assert {name: cells[name].value for name in row} == row
    formats = {name: cells[name].number_format for name in row}
    assert formats["mean_score"] == "0.000"
    assert formats["coverage"] == "0.0%"
    assert formats["cost_usd"] == "$#,##0.00"
    assert formats["rank"] == "#,##0"


def test_a_workbook_of_several_figures_has_a_sheet_for_each():
    book = opened(
        (FIGURES["judge_agreement"], [{"kappa": 0.5}]),
        (FIGURES["judge_reliability"], [{"alpha": 0.25}]),
    )

    assert book.sheetnames[:2] == ["judge_agreement", "judge_reliability"]
    assert [sheet["A2"].value for sheet in book.worksheets[:2]] == [0.5, 0.25]


def test_a_text_too_long_for_a_cell_is_refused():
    sheet = Sheet("rows", [{"text": "x" * 40_000}])

    reason = "row 2, column text: a workbook has at most"
    with pytest.raises(PipelineError, match=reason):
        workbook([sheet])
