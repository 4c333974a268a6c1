"""Numbers as text for people, and notes on ranks."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

SMALL_MARK = "*"
"""Marks a value whose interval may be too narrow."""
_MINUS = re.compile(r"(?<!\S)-(?=[\d.])")
"""A hyphen that begins a number, not one within a name or a date."""


def number(value: float, form: str = "z.3f") -> str:
    """Return a number in one of Python's formats, with a true minus sign.

    `z` in the format removes the minus sign of a zero.
    """
    return true_minus(f"{value:{form}}")


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Return `1 task`, `2 tasks`; the plural is the singular with an s unless it is given."""
    noun = singular if n == 1 else plural or f"{singular}s"
    return f"{n:,} {noun}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as `4 min 10 s`."""
    minutes, rest_s = divmod(round(seconds), 60)
    hours, rest_min = divmod(minutes, 60)
    if hours:
        return f"{hours} h {rest_min} min"
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"


def coverage_text(share: float) -> str:
    """Return a coverage in per cent, rounded down, so that only a complete one is 100.0%."""
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}%"


def true_minus(text: str) -> str:
    """Return a text with a true minus sign in its negative numbers."""
    return _MINUS.sub("−", text)


_NAMED = 4
"""Number of names in a note; the others are only counted."""


def rank_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield notes on ranks.

    Rows have `split`, `model`, `rank`, `mean_score`, `n_tasks` and `n_tasks_ranked`.
    """
    partial_splits = []
    unranked = []
    for row in rows:
        if row["rank"] is not None:
            if row["n_tasks_ranked"] < row["n_tasks"]:
                partial_splits.append(f"{row['split']} {row['n_tasks_ranked']}")
        elif row["mean_score"] is not None:
            n_tasks = counted(row["n_tasks"], "task")
            unranked.append(f"{row['model']} on {row['split']} ({n_tasks})")
    if partial_splits:
        yield (
            "Ranks compare only the tasks with a complete trial for every ranked model"
            f" ({list_text(partial_splits)}), so a higher score can stand below."
        )
    if unranked:
        yield (
            f"No rank: {list_text(unranked)}. A model is ranked if it has a score on at least half"
            " as many tasks as the model with the most, and on tasks that all ranked models have."
        )


def list_text(names: Iterable[str], n_shown: int = _NAMED, separator: str = ", ") -> str:
    """Return a list of names as text, such as `a, b, and 3 more`.

    It has the first `n_shown` of them, without duplicates, and the number of the others.
    """
    unique_names = list(dict.fromkeys(names))
    parts = unique_names[:n_shown]
    if len(unique_names) > n_shown:
        parts.append(f"and {len(unique_names) - n_shown} more")
    return separator.join(parts)


def p_value_text(p_value: float) -> str:
    """Return a p-value with four decimals."""
    return f"{p_value:.4f}" if p_value >= 0.0001 else "below 0.0001"
