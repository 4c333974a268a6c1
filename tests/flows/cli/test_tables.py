"""Tables in terminals: the essential columns from 80 characters on, and no line that is too
long.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import click
import pytest
from rich.cells import cell_len

from flows.cli.figures import show_figure
from flows.cli.main import cli
from flows.cli.output import say, show_table
from tasks.console.tables import TableColumn
from tasks.figures.figure import Column, Figure, Rows, terminal_columns
from tasks.figures.shown import FIGURES
from tests.flows.conftest import opened_terminal

WIDTHS = (80, 100, 140, 200)
NAMES = [f"column_{index}" for index in range(12)]
MODEL = "gpt-5.6-sol-high"
LONG = "a-provider/some-model-with-a-long-name-2026-11-28-high"
NUMBERS: dict[str, Any] = {
    "count": 1234,
    "number": 12.34,
    "score": 0.607,
    "signed": -0.108,
    "share": 0.738,
    "coverage": 0.9876,
    "usd": 123.45,
    "price": 0.0123,
    "p": 0.0106,
    "time": datetime(2026, 11, 28, 3, 4, tzinfo=UTC),
    "yes": True,
    "task": "069b4e68dad42672376e3865",
}
TEXTS = {
    "split": "finance_hard",
    "outcome": "below_bar",
    "causes": "2 timeout",
    "measure_of": "agreement",
    "first_decision": "partly met",
    "second_decision": "partly met",
    "cause": "limit",
    "label": "Tax Law",
    "later": "2026-11-28",
}
"""Usual values of columns that the name of a model would make too wide."""
PROSE = {
    "title",
    "meaning",
    "detail",
    "explanation",
    "no_figure",
    "criterion",
    "rule",
    "findings",
}
"""Columns with sentences, which are wrapped."""


def usual_row(
    figure: Figure,
    name: str = MODEL,
    sentence: str = "Two words",
) -> dict[str, Any]:
    """A row with a usual value in each column."""
    values = {
        column.name: usual_value(column, name, sentence) for column in figure.columns
    }
    return values | {column.few: True for column in figure.columns if column.few}


def usual_value(column: Column, name: str, sentence: str) -> Any:
    if column.kind in NUMBERS:
        return NUMBERS[column.kind]
    return sentence if column.name in PROSE else TEXTS.get(column.name, name)


def on_terminal(monkeypatch, width: int):
    """Have Rich take standard output for a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "50")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def printed(capsys) -> str:
    """What was printed since the last call, without styles."""
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)


def heading_of(table: str) -> str:
    """The heading of a table as one text: the lines above the line below it."""
    heading, _, _ = re.split(r"(\n *──)", table, maxsplit=1)
    return heading


def essential_columns(figure: Figure, rows: Rows) -> list[TableColumn]:
    """The essential columns, without those that are headings."""
    return [
        column
        for column in terminal_columns(figure.columns, rows, figure.essential)
        if column.is_essential and column.name not in figure.boards
    ]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_at_most_eight_essential_columns_that_fit_80_characters(name):
    figure = FIGURES[name]
    widths = {
        column.name: column.shortened.width
        for column in essential_columns(figure, [usual_row(figure)])
    }

    assert set(figure.essential) <= set(widths)
    assert 1 <= len(widths) <= 8
    assert sum(widths.values()) + 2 * (len(widths) - 1) <= 80, widths


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", FIGURES)
def test_no_essential_column_is_missing_and_no_line_is_too_long(
    name,
    width,
    monkeypatch,
    capsys,
):
    figure = FIGURES[name]
    on_terminal(monkeypatch, width)
    sentence = "Many words in a row. " * 9
    rows = [usual_row(figure, f"{LONG}-{index}", sentence) for index in range(3)]

    show_figure(figure, rows, title=figure.title)

    table = printed(capsys)
    heading = heading_of(table)
    assert max(map(cell_len, table.splitlines())) <= width
    for column in essential_columns(figure, rows):
        for word in column.shortened.heading.split():
            assert word in heading, column.name
        for cell in column.cells:
            assert cell[:8].strip() in table, column.name


@pytest.mark.parametrize("name", FIGURES)
def test_a_pipe_has_the_essential_columns_and_a_wide_table_all_whatever_the_rows(
    name, capsys
):
    figure = FIGURES[name]
    full = [usual_row(figure)] * 2
    empty = [dict.fromkeys(full[0])]

    headings = []
    for rows in (full, empty):
        show_figure(replace(figure, boards=()), rows)
        headings.append(sorted(heading_of(printed(capsys)).split()))
        show_figure(figure, rows, is_wide=True)
        headings.append(heading_of(printed(capsys)).split())

    assert headings[0] == headings[2]
    assert headings[1] == headings[3]
    assert len(headings[1]) >= len(headings[0])


@pytest.mark.parametrize(
    ("width", "last_shown", "first_hidden"),
    [
        (30, "Model", "Score"),
        (40, "0.607*", "interval"),
        (50, "interval", "Coverage"),
    ],
)
def test_a_narrow_terminal_leaves_out_columns_and_keeps_names_and_numbers_whole(
    width,
    last_shown,
    first_hidden,
    monkeypatch,
    capsys,
):
    on_terminal(monkeypatch, width)
    board = FIGURES["leaderboard"]

    show_figure(board, [usual_row(board)])

    table, hidden = printed(capsys).split("A wider terminal")
    assert MODEL in table
    assert last_shown in table
    assert first_hidden not in table
    assert first_hidden in hidden
    assert max(map(cell_len, table.splitlines())) <= width


def test_what_is_the_same_in_all_rows_is_in_the_heading_of_a_terminal_but_for_essential_columns(
    monkeypatch,
    capsys,
):
    on_terminal(monkeypatch, 200)
    board = FIGURES["leaderboard"]
    row = usual_row(board) | {"judge_config": "strict"}

    show_figure(
        board, [row | {"model": name, "n_tasks": n} for n, name in enumerate("ab")]
    )

    heading, table = printed(capsys).split("\n", 1)
    assert heading.startswith(
        "Judge: strict · Split: finance_hard · Label: Tax Law · "
    )
    assert "Tasks ranked: 1,234" in heading
    assert "Coverage: " not in heading
    assert " Tasks " in table


def test_a_terminal_leaves_out_a_column_without_any_value(monkeypatch, capsys):
    on_terminal(monkeypatch, 80)

    show_table(["name", "note"], [["a", ""], ["b", None]])

    assert "note" not in printed(capsys)


def test_rows_of_several_boards_stand_under_their_headings(capsys):
    board = FIGURES["leaderboard"]
    row = usual_row(board) | {"judge_config": "strict", "label": None}
    names = product(("model-0", "model-1"), "ab")

    show_figure(
        board, [row | {"model": model, "split": split} for model, split in names]
    )

    table = printed(capsys)
    assert table.startswith("Judge: strict\n")
    words = re.findall(r"^Split: (\w)|(model-\d)", table, re.MULTILINE)
    text = " ".join(map("".join, words))
    assert text == "a model-0 model-1 b model-0 model-1"


def test_a_long_name_is_wrapped_and_never_cut(monkeypatch, capsys):
    on_terminal(monkeypatch, 80)
    row = usual_row(FIGURES["diff"], LONG)

    show_figure(FIGURES["diff"], [row])

    first_cells = [
        line[: line.find("  ")]
        for line in printed(capsys).splitlines()
        if not line.startswith(("Under", " "))
    ]
    assert LONG in "".join(first_cells)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_column_of_a_query_is_nothing(width, monkeypatch, capsys):
    on_terminal(monkeypatch, width)

    show_table(NAMES, [[LONG, "x" * 400, 1.5, 1234567] * 3])

    table = printed(capsys)
    assert max(map(cell_len, table.splitlines())) <= width
    assert all(name in table for name in NAMES)
    assert ("A wider terminal (or --wide) also shows: " in table) == (width < 200)


@pytest.mark.parametrize(
    ("command_name", "option"),
    [
        ("leaderboard", "--wide"),
        ("run", "prbench figure leaderboard --wide"),
    ],
)
def test_a_cut_board_names_an_option_that_exists(
    command_name,
    option,
    monkeypatch,
    capsys,
):
    on_terminal(monkeypatch, 80)
    board = FIGURES["leaderboard"]

    with click.Context(cli.commands[command_name]):
        show_figure(board, [usual_row(board, LONG)])

    output = " ".join(printed(capsys).split())
    assert f"A wider terminal (or {option}) also shows: " in output


def test_a_cut_plan_of_a_command_without_wide_names_no_option(monkeypatch, capsys):
    on_terminal(monkeypatch, 80)

    with click.Context(cli.commands["backfill"]):
        show_table(NAMES, [["x" * 40] * 12])

    assert "A wider terminal also shows: " in printed(capsys)


def test_sentences_break_between_words_on_a_terminal(monkeypatch):
    terminal = opened_terminal(monkeypatch, "stdout", n_columns=80)
    path = f"/{'a-folder/' * 12}report"
    text = f"{'several words ' * 12}at {path}"

    say(text)

    lines = terminal.getvalue().splitlines()
    assert lines[-1] == path
    assert max(map(len, lines[:-1])) <= 80
    assert " ".join(lines) == text


def test_indented_lines_such_as_commands_stay_whole_on_a_terminal(monkeypatch):
    terminal = opened_terminal(monkeypatch, "stdout", n_columns=80)
    command = f"  prbench sql '{'column, ' * 20}'"

    say(f"Next:\n{command}")

    assert terminal.getvalue() == f"Next:\n{command}\n"


def test_sentences_are_one_line_in_a_pipe(capsys):
    sentence = "several words " * 12 + "at the end"

    say(sentence)

    assert printed(capsys) == f"{sentence}\n"
