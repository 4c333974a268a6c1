"""How surely the tasks of a hard selection belong there, and what it shares with other selections of the same tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.hard_subset.universe import Universe
from tasks.rules.hardness import BORDER, inclusion_probabilities, jaccard, leave_one_out, select_hardest

Row = dict[str, Any]


def stability_rows(universe: Universe, size: int) -> list[Row]:
    """One row a task of the universe, hardest first: its probability of being selected by a resampled panel.

    The columns are those of `hard_stability` without the selection's own.
    """
    ranked = select_hardest(universe.scores, len(universe.scores))
    found = inclusion_probabilities(universe.trials, size)
    probabilities = dict(zip(universe.scores, map(float, found), strict=True))
    low, high = BORDER
    return [
        {
            "task_id": task.task_id,
            "mean_score": task.mean_score,
            "is_selected": task.rank <= size,
            "inclusion_probability": probabilities[task.task_id],
            "is_border": low <= probabilities[task.task_id] <= high,
        }
        for task in ranked
    ]


def overlap_rows(universe: Universe, selected: frozenset[str], official: Mapping[str, frozenset[str]]) -> list[Row]:
    """What the selection shares with those of the panel without one model, and with the data set's own.

    The columns are those of `hard_overlaps` without the selection's own. A selection without one model is made among
    the tasks of the whole panel's universe. Of an own split of the data set, the tasks outside the universe are left
    aside, and a split that holds none or all of the universe says nothing and has no row.

    Args:
        official: split name -> task ids.
    """
    rows = []
    if len(universe.models) > 1:
        others = leave_one_out(universe.scores, len(selected))
        rows = [
            _overlap("leave_one_out", model, selected, other)
            for model, other in zip(universe.models, others, strict=True)
        ]
    for split, members in official.items():
        within = members & universe.scores.keys()
        if 0 < len(within) < len(universe.scores):
            rows.append(_overlap("official", split, selected, within))
    return rows


def _overlap(kind: str, compared_with: str, selected: frozenset[str], other: frozenset[str]) -> Row:
    return {
        "kind": kind,
        "compared_with": compared_with,
        "n_selected": len(selected),
        "n_compared": len(other),
        "n_shared": len(selected & other),
        "jaccard": jaccard(selected, other),
    }


def in_words(n_border: int, overlaps: Sequence[Row]) -> str:
    """The stability of a selection as the end of a sentence about it."""
    words = f"{n_border} on the border"
    without = [row for row in overlaps if row["kind"] == "leave_one_out"]
    if without:
        least = min(without, key=lambda row: (row["jaccard"], row["compared_with"]))
        words += f"; least overlap without one model: {least['jaccard']:.2f} (without {least['compared_with']})"
    for row in overlaps:
        if row["kind"] == "official":
            words += f"; overlap with the official {row['compared_with']}: {row['jaccard']:.2f}"
    return words
