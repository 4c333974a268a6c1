"""Boards of the ranking as HTML: a line for each model, with its interval drawn beside its figures.

The drawings are SVG of the page itself, so they are there without scripts and on paper.
"""

import math
from dataclasses import dataclass
from typing import Any

from tasks.report.content.figures import Row
from tasks.report.content.ranking import Board, Ranking
from tasks.rules.text.numbers import coverage_text, number, rank_notes

_MARGIN = 0.04
"""Room on both sides of the axis, as a share of what is shown."""
_TICKS = 5
"""About so many steps has an axis."""


@dataclass(frozen=True)
class Axis:
    """From where to where values are drawn; positions are percent of the width."""

    low: float
    high: float

    def at(self, value: float) -> str:
        """Where a value is."""
        return f"{100 * (value - self.low) / (self.high - self.low):.2f}%"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        """Round values within the axis: where each is, and what it is called."""
        return [(self.at(value), _short(value)) for value in ticks(self.low, self.high)]


def axis_of(ranking: Ranking) -> Axis:
    """The axis of all boards of a ranking, which fits what they show."""
    margin = _MARGIN * ((ranking.high - ranking.low) or 1.0)
    return Axis(ranking.low - margin, ranking.high + margin)


def ticks(low: float, high: float) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten within two values, in steps that give about five."""
    power = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    choices = [_multiples(factor * power, low, high) for factor in (1, 2, 5, 10)]
    return min(choices, key=lambda found: abs(len(found) - _TICKS))


def _multiples(step: float, low: float, high: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def lines(board: Board, axis: Axis) -> list[dict[str, Any]]:
    """The lines of a board: models in their order, and scores of the paper between them."""
    own = [_line(row, axis) for row in board.rows]
    nothing = dict.fromkeys(("rank", "bar", "interval", "ranks", "coverage", "is_below_bar"))
    quoted = [
        nothing | {"model": each.model, "score": _short(each.value, 3), "dot": axis.at(each.value),
                   "source": each.source, "value": each.value}
        for each in board.references
    ]  # fmt: skip
    placed = sorted([*own, *quoted], key=lambda line: -math.inf if line["value"] is None else line["value"])
    return placed[::-1] if quoted else own


def _line(row: Row, axis: Axis) -> dict[str, Any]:
    is_known = row["ci_low"] is not None and row["mean_score"] is not None
    ranks = (row["rank_low"], row["rank_high"])
    return {
        "rank": row["rank"], "model": row["model"], "value": row["mean_score"], "source": "",
        "score": None if row["mean_score"] is None else _short(row["mean_score"], 3),
        "dot": None if row["mean_score"] is None else axis.at(row["mean_score"]),
        "bar": (axis.at(row["ci_low"]), axis.at(row["ci_high"])) if is_known else None,
        "interval": f"{_short(row['ci_low'], 3)} to {_short(row['ci_high'], 3)}" if is_known else None,
        "ranks": None if None in ranks else str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}",
        "coverage": coverage_text(row["coverage"]),
        "is_below_bar": row["is_below_bar"],
    }  # fmt: skip


def shown(ranking: Ranking) -> dict[str, Any]:
    """A ranking as the template takes it: boards with their lines, and where scores of the paper are from."""
    axis = axis_of(ranking)
    return {
        "judging": ranking.judging, "sentence": ranking.sentence, "axis": axis,
        "boards": [(board, lines(board, axis)) for board in ranking.boards],
        "notes": list(rank_notes([board.rows for board in ranking.boards])),
        "has_gaps": any(row["is_below_bar"] for board in ranking.boards for row in board.rows),
        "sources": list(dict.fromkeys(each.source for board in ranking.boards for each in board.references)),
    }  # fmt: skip


def _short(value: float, decimals: int = 6) -> str:
    return number(value, f"z.{decimals}{'f' if decimals == 3 else 'g'}")
