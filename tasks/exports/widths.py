"""How wide an interval is expected to become with more labels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.exports.drawing import Population, Purpose, Row
from tasks.rules.statistics.debiased import FEWEST_LABELLED_TASKS, FEWEST_LABELS
from tasks.rules.statistics.intervals import Floats
from tasks.rules.statistics.sampling import expected_width, label_variance
from tasks.run.missing_work import WantedTasks
from warehouse import Reader

AFTER = (50, 100, 200)
"""Numbers of labels for which the expected width is given, beside that of the sheet."""


class Width(NamedTuple):
    """The expected width of an interval after some more labels; with none, the width now (None without a figure).

    `is_enough` is whether so many labels are expected to give each of the chosen intervals.
    """

    n_labels: int
    width: float | None
    is_enough: bool


def expected_widths(
    reader: Reader, wanted: WantedTasks, purpose: Purpose, population: Population, n_rows: int
) -> list[Width]:
    """The mean width of the chosen intervals now, and as expected after some numbers of labels and after `n_rows`.

    Labels of earlier sheets count with the width that they give now, and without a figure by their number.
    """
    query = "difference_width" if purpose.is_difference else "widths"
    now = {row["model"]: row for row in reader.rows(sql.read(f"questions/exports/drawing/{query}"), {
        "benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision, "judge": population.judge,
        "vintages": sorted({row["vintage"] for row in population.rows}), "score": purpose.score,
        **({"models": list(purpose.models)} if purpose.is_difference else
           {"breakdown": purpose.breakdown, "label": purpose.label}),
    })}  # fmt: skip
    models, free = population.models, population.free
    groups = [list(purpose.models)] if purpose.is_difference else [[each] for each in sorted(set(models.tolist()))]
    known = [now[each]["width"] for group in groups for each in [" ".join(group)] if each in now]
    has_figures = len(known) == len(groups)
    found = [Width(0, float(np.mean(known)) if has_figures else None, has_figures)]
    for n in sorted({*AFTER, n_rows}):
        probabilities = population.probabilities(n)
        widths = [
            _width(population, free[of_group], probabilities[of_group], group, now.get(" ".join(group)))
            for group in groups
            for of_group in [np.isin(models[free], group)]
        ]
        found.append(Width(n, float(np.mean(widths)), has_figures or _is_enough(population, n)))
    return found


def _is_enough(population: Population, n: int) -> bool:
    return n >= n_needed(population) and population.n_tasks >= FEWEST_LABELLED_TASKS


def n_needed(population: Population) -> int:
    """Return about how many more labels give each model as many as a figure needs."""
    models, of_model = np.unique(population.models, return_inverse=True)
    n_known = np.bincount(of_model, population.is_known)
    return max(0, len(models) * (FEWEST_LABELS - int(n_known.min())))


def _width(
    population: Population, places: NDArray[np.int64], probabilities: Floats, group: Sequence[str],
    now: Row | None,
) -> float:  # fmt: skip
    """The expected width of a model's mean, or of a difference of two, with labels of these probabilities."""
    values: dict[str, float] = {}
    for row, contribution in zip(population.rows, population.contributions.tolist(), strict=True):
        if row["model"] in group and row["is_counted"]:
            sign = -1.0 if len(group) > 1 and row["model"] == group[0] else 1.0
            values[row["task"]] = values.get(row["task"], 0.0) + sign * contribution * row["judge_value"]
    of_tasks = len(values) * float(np.var(list(values.values()), ddof=1)) if len(values) > 1 else 0.0
    added = label_variance(population.contributions[places], population.errors[places], probabilities)
    n_new = float(probabilities.sum())
    if now is None:
        n_known = int((population.is_known & np.isin(population.models, group)).sum())
        return expected_width(of_tasks, [added], [n_new], n_known)
    before = max(0.0, (now["width"] / 2.0 / 1.96) ** 2 - of_tasks)
    return expected_width(of_tasks, [before, added], [now["n_labels"], n_new])
