"""Why a model has no rank, and why one with a higher score can stand below."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasks.rules.text.numbers import counted

_NAMED = 4
"""So many models are named; of the others a note says how many they are."""
Rows = Sequence[Mapping[str, Any]]


def rank_notes(boards: Sequence[Rows]) -> Iterator[str]:
    """Return what must be known about the ranks of some boards.

    Args:
        boards: each with the rows that are ranked together (`split`, `model`, `rank`, `mean_score`, `n_tasks`,
            `n_tasks_ranked`).
    """
    rows = [row for board in boards for row in board]
    ranked = [row for row in rows if row["rank"] is not None]
    compared = [f"{row['split']} {row['n_tasks_ranked']}" for row in ranked if row["n_tasks_ranked"] < row["n_tasks"]]
    below = [f"{row['model']} on {row['split']}" for board in boards for row in board if _is_below_lower(row, board)]
    unranked = [
        f"{row['model']} on {row['split']} ({counted(row['n_tasks'], 'task')})"
        for row in rows
        if row["rank"] is None and row["mean_score"] is not None
    ]
    if compared or below:
        of = f" ({_some(compared)})" if compared else ""
        so = f", so a higher score can stand below: {_some(below)}" if below else ""
        yield f"Ranks compare only the tasks with a complete trial for every ranked model{of}{so}."
    if unranked:
        yield (
            f"No rank: {_some(unranked)}. Ranked is who has a score on at least half as many tasks as the model with "
            "the most, and on tasks that all ranked models have."
        )


def _is_below_lower(row: Mapping[str, Any], board: Rows) -> bool:
    """Whether a row stands below one with a lower score."""
    above = [each for each in board if row["rank"] is not None and (each["rank"] or row["rank"]) < row["rank"]]
    return any(each["mean_score"] < row["mean_score"] for each in above)


def _some(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = [f"and {len(listed) - _NAMED} more"] if len(listed) > _NAMED else []
    return ", ".join([*listed[:_NAMED], *more])
