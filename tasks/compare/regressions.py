"""Comparisons in CI: scores that fell, differences without a test, and a summary in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.rules.statistics.comparison import is_drop
from tasks.rules.statistics.intervals import FEWEST_DIFFERING
from tasks.rules.text.cells import markdown_cell
from tasks.rules.text.characters import one_line, visible
from tasks.rules.text.numbers import counted, number

DifferenceRow = Mapping[str, Any]
"""A row of `tasks.compare.differences.rows_of`."""
DifferenceRows = Sequence[DifferenceRow]
_HEADINGS = (
    "Compared",
    "Split",
    "Judge",
    "First",
    "Second",
    "Difference",
    "95 % interval",
    "p corrected",
    "Tasks",
)


def worse(rows: DifferenceRows, least_drop: float) -> list[DifferenceRow]:
    """Return the differences in which the second side is significantly lower, by at least
    `least_drop`.
    """
    return [row for row in rows if row["is_significant"] and is_drop(row["difference"], least_drop)]


def untested(rows: DifferenceRows) -> list[str]:
    """Return a sentence for each difference on so few tasks that no test is possible."""
    return [
        f"{row['second']} and {row['first']} on {row['split']}: {counted(row['n_tasks'], 'task')},"
        " too few for a test"
        for row in rows
        # At least one task has the most common value, so at most the others differ from it.
        if row["n_tasks"] <= FEWEST_DIFFERING
    ]


def as_markdown(title: str, lines: Sequence[str], rows: DifferenceRows) -> str:
    """Return a heading, lines of text and a table of differences, to append to a file."""
    blocks = [f"\n## {_shown(title)}", *map(_shown, lines)]
    if rows:
        table = [_HEADINGS, ["---"] * len(_HEADINGS), *map(_cells, rows)]
        blocks.append("\n".join(f"| {' | '.join(cells)} |" for cells in table))
    return "\n\n".join(blocks) + "\n"


def _shown(text: str) -> str:
    return markdown_cell(visible(one_line(text, 2_000)))


def _cells(row: DifferenceRow) -> list[str]:
    interval = "–"
    if row["ci_low"] is not None:
        interval = f"{number(row['ci_low'], '+z.3f')} to {number(row['ci_high'], '+z.3f')}"
    p_value = "–"
    if row["p_adjusted"] is not None:
        p_value = number(row["p_adjusted"]) if row["p_adjusted"] >= 0.001 else "&lt; 0.001"
    return [
        _shown(f"{row['first']} → {row['second']}"),
        _shown(row["split"]),
        _shown(row["second_judge"]),
        number(row["first_mean"]),
        number(row["second_mean"]),
        number(row["difference"], "+z.3f"),
        interval,
        p_value,
        f"{row['n_tasks']} of {row['n_tasks_wanted']}",
    ]
