"""Leaderboards as files: numbers are numbers, texts are texts, and every column is explained."""

import csv
from datetime import UTC, date, datetime
from pathlib import Path

import openpyxl
import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.exports.board_files import write_board
from tasks.figures.leaderboard import LeaderboardOptions, leaderboard
from tasks.rules.errors import UsageError
from tasks.rules.records import ResultTable
from tests.kit import job_on

FORMULA = '=HYPERLINK("http://x","y")'
CHOICES = [
    LeaderboardOptions(), LeaderboardOptions(vintage="all"), LeaderboardOptions(is_severity=True),
    LeaderboardOptions(is_hard=True),
    *(LeaderboardOptions(by=by) for by in load_benchmark("prbench").common_breakdowns),
]  # fmt: skip


@pytest.fixture
def odd(tmp_path: Path) -> tuple[Job, ResultTable]:
    """One row of everything that a cell can hold."""
    row = (FORMULA, "-3 %", "2026-11-22", "plain", 7, -0.25, True, None, ["a", "b"],
           datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2))  # fmt: skip
    names = ["model", "judge", "vintage", "split", "n_tasks", "mean_score", "is_complete", "ci_low", "selections",
             "first_response_at", "created_at"]  # fmt: skip
    return job_on("sample", tmp_path / "data"), ResultTable(names, [row])


def lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.reader(opened))


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_each_column_of_each_leaderboard_is_explained(
    choice: LeaderboardOptions, inspected: Job, tmp_path: Path
) -> None:
    table = leaderboard(inspected, choice)
    if not table.rows:
        # The world has no hard subset and few labels; what a leaderboard says of them has the same columns.
        table = ResultTable(table.columns, [(None,) * len(table.columns)])
    write_board(inspected, table, tmp_path / "board.csv", choice.by)

    heading, *explained = lines(tmp_path / "board-columns.csv")
    assert ["column", "meaning"] == heading
    assert [name for name, _ in explained] == lines(tmp_path / "board.csv")[0]
    assert [] == [name for name, meaning in explained if len(meaning) < 10]


def test_csv_keeps_numbers_and_dates_and_marks_only_spreadsheet_code(
    odd: tuple[Job, ResultTable], tmp_path: Path
) -> None:
    write_board(*odd, tmp_path / "odd.csv")

    _, row = lines(tmp_path / "odd.csv")
    assert [
        f"'{FORMULA}", "'-3 %", "2026-11-22", "plain", "7", "-0.25", "True", "", "a, b", "2026-01-02T03:04:05+00:00",
        "2026-01-02",
    ] == row[2:]  # fmt: skip


def test_excel_has_each_value_in_its_type_and_no_formula(odd: tuple[Job, ResultTable], tmp_path: Path) -> None:
    write_board(*odd, tmp_path / "odd.xlsx")

    sheet = openpyxl.load_workbook(tmp_path / "odd.xlsx")["leaderboard"]
    cells = {sheet.cell(1, column).value: sheet.cell(2, column) for column in range(1, sheet.max_column + 1)}
    assert {
        "model": (FORMULA, "s", True), "judge": ("-3 %", "s", True), "vintage": ("2026-11-22", "s", False),
        "n_tasks": (7, "n", False), "mean_score": (-0.25, "n", False), "is_complete": (True, "b", False),
        "ci_low": (None, "n", False), "selections": ("a, b", "s", False),
        "first_response_at": (datetime(2026, 1, 2, 3, 4, 5), "d", False),
        "created_at": (datetime(2026, 1, 2), "d", False),
    }.items() <= {
        name: (cell.value, cell.data_type, bool(cell.quotePrefix)) for name, cell in cells.items()
    }.items()  # fmt: skip


def test_an_empty_leaderboard_is_refused(odd: tuple[Job, ResultTable], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model has a verdict in this selection"):
        write_board(odd[0], ResultTable(odd[1].columns, []), tmp_path / "board.csv")
    assert [] == list(tmp_path.iterdir())
