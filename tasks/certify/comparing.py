"""Certified figures beside recomputed ones."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
KEY = (
    "split", "is_own_hard", "breakdown", "label", "judge", "judge_config_hash", "template_hash", "grading",
    "judge_trial", "vintage", "model", "model_config_hash", "score_name",
)  # fmt: skip
"""The columns that say what a row of a leaderboard is about."""
_CLOSE = 1e-9
"""The share of a mean or sum by which its last digits may differ: they depend on the order of adding."""
_CLOSE_ENDS = 1e-6
"""The same for ends of intervals, since resamples are computed in single precision."""
_DRAWN = ("ci_low", "ci_high")


@dataclass(frozen=True)
class Difference:
    """A figure that comes out differently; `column` is None where the whole row is on one side only."""

    leaderboard: str
    row: dict[str, Any]
    column: str | None
    certified: Any
    recomputed: Any

    @property
    def values(self) -> tuple[Any, Any]:
        """Both values, the certified one first."""
        return self.certified, self.recomputed


@dataclass(frozen=True)
class Compared:
    """How many rows and figures were compared, and those that differ."""

    n_rows: int
    n_figures: int
    differences: list[Difference]


def compare(
    leaderboard: str, certified: Iterable[str], recomputed: Iterable[str], *, is_same_sql: bool = True
) -> Compared:
    """Compare the rows of a leaderboard, each a JSON text; by other SQL they may have columns more than are certified.

    Raises:
        ValueError: a row is no JSON, or two rows are about the same.
        TypeError: a row is no object.
    """
    ours, theirs = _by_key(recomputed), _by_key(certified)
    n_figures, found = 0, []
    for key in sorted(theirs.keys() | ours.keys(), key=repr):
        stated, made = theirs.get(key), ours.get(key)
        about = {column: value for column, value in (stated or made or {}).items() if column in KEY}
        if stated is None or made is None:
            sides = ("present", "absent") if made is None else ("absent", "present")
            found.append(Difference(leaderboard, about, None, *sides))
            continue
        columns = [column for column in dict.fromkeys([*stated, *(made if is_same_sql else ())]) if column not in KEY]
        n_figures += len(columns)
        for column in columns:
            if not is_same(column, stated.get(column), made.get(column)):
                found.append(Difference(leaderboard, about, column, stated.get(column), made.get(column)))
    return Compared(len(theirs), n_figures, found)


def _by_key(lines: Iterable[str]) -> dict[tuple[Any, ...], Row]:
    rows: dict[tuple[Any, ...], Row] = {}
    for line in lines:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise TypeError("a row of a leaderboard is no object")
        key = tuple(json.dumps(row.get(column)) for column in KEY)
        if key in rows:
            raise ValueError("two rows of a leaderboard are about the same")
        rows[key] = row
    return rows


def is_same(column: str, stated: Any, made: Any) -> bool:
    """Whether a figure is the same but for the last digits of a mean."""
    if type(stated) is float and type(made) is float:
        close = _CLOSE_ENDS if column.endswith(_DRAWN) else _CLOSE
        return math.isclose(stated, made, rel_tol=close, abs_tol=close)
    return type(stated) is type(made) and bool(stated == made)
