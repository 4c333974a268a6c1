"""How often intervals hold the true calibration of a made-up decision model, and how far the estimates are off.

    python -m tests.benchmarks.calibration_coverage --replications 200

The model's log-odds are those of the truth times a factor: above 1 it is too sure. Decisions of a task hang together.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.agreement import agreement_intervals
from tasks.rules.statistics.calibration import BINS, brier, calibration_error, corrected
from tasks.rules.statistics.intervals import draws
from tests.benchmarks.figures import arguments, markdown

Floats = NDArray[np.float64]
WORLDS = ((100, 15, 1.5), (100, 15, 2.0), (300, 18, 1.5), (300, 18, 2.5))
"""Tasks, criteria of each, and the factor."""


def sums_of(p: Floats, y: Floats) -> Floats:
    """The sums of `tasks.rules.statistics.calibration` by task, shape (n_tasks, BINS, 6), of arrays (n_tasks, n)."""
    sums = np.zeros((len(p), BINS, 6))
    task = np.broadcast_to(np.arange(len(p))[:, None], p.shape)
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    for index, values in enumerate((np.ones_like(p), p, y, p * p, p * y, y * y)):
        np.add.at(sums, (task, bins, index), values)
    return sums


def world(n_tasks: int, n_criteria: int, factor: float, generator: np.random.Generator) -> Floats:
    odds = generator.beta(1.2, 1.2, (n_tasks, n_criteria))
    of_task = np.broadcast_to(generator.random((n_tasks, 1)), odds.shape)
    luck = np.where(generator.random(odds.shape) < 0.2, of_task, generator.random(odds.shape))
    return sums_of(1 / (1 + ((1 - odds) / odds) ** factor), (luck < odds).astype(float))


def rows(n: int) -> Iterator[Sequence[object]]:
    """The lines of the table."""
    for n_tasks, n_criteria, factor in WORLDS:
        generator = np.random.default_rng(7)
        truth = world(30_000, n_criteria, factor, np.random.default_rng(99)).sum(axis=0)
        sampled = draws(n_tasks, 1_000, 3)
        results: dict[str, list[tuple[float, float, float]]] = {"Brier score": [], "calibration error": []}
        for _ in range(n):
            sums = world(n_tasks, n_criteria, factor, generator)
            ends = agreement_intervals(sums[:, None], brier, sampled=sampled)[0][0].tolist()
            results["Brier score"].append((float(brier(sums.sum(axis=0))), ends[0], ends[1]))
            results["calibration error"].append(corrected(sums, calibration_error, sampled))
        for name, measure in (("Brier score", brier), ("calibration error", calibration_error)):
            true, estimates = float(measure(truth)), np.array(results[name])
            covered = np.mean((estimates[:, 1] <= true) & (true <= estimates[:, 2]))
            yield n_tasks, n_criteria, factor, name, f"{true:.4f}", f"{estimates[:, 0].mean():.4f}", f"{covered:.1%}"


def main() -> None:
    header = ("tasks", "criteria", "factor", "measure", "truth", "mean estimate", "interval covers")
    markdown(header, rows(arguments(__doc__, replications=200).replications))


if __name__ == "__main__":
    main()
