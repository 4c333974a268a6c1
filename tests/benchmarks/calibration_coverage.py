"""How often intervals contain the true calibration and neighbour effects of a made-up decision
model, and how far the estimates are off.

The model's log-odds are the true ones times a factor: 1 is perfect calibration, above 1 the model
is overconfident. Decisions of a task are correlated: a share of them has the same luck. In a group,
the other criteria shift the log-odds by a constant, and later positions shift them further.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.measures.agreement import SUMS, calibration_of, change_of
from tasks.rules.statistics.calibration import BINS, brier, calibration_error
from tests.benchmarks.figures import arguments, markdown

Floats = NDArray[np.float64]
FACTORS = (1.0, 1.2, 1.5, 2.0)
WORLDS = ((50, 0.2), (100, 0.2), (300, 0.2), (100, 0.6))
"""Number of tasks, and the share of a task's criteria that have the same luck."""
CRITERIA = 16
"""Criteria per task."""


def sums_of(p: Floats, y: Floats) -> Floats:
    """The sums of `tasks.rules.statistics.calibration` by task, shape (n_tasks, BINS, 6), of arrays
    (n_tasks, n).
    """
    sums = np.zeros((len(p), BINS, 6))
    task = np.broadcast_to(np.arange(len(p))[:, None], p.shape)
    bins = np.maximum(np.ceil(p * BINS).astype(int) - 1, 0)
    for index, values in enumerate((np.ones_like(p), p, y, p * p, p * y, y * y)):
        np.add.at(sums, (task, bins, index), values)
    return sums


def world(
    n_tasks: int, shared: float, factor: float, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """The model's probabilities, the true ones, and the decisions, each of shape (n_tasks,
    CRITERIA).
    """
    odds = generator.beta(1.2, 1.2, (n_tasks, CRITERIA))
    of_task = np.broadcast_to(generator.random((n_tasks, 1)), odds.shape)
    luck = np.where(generator.random(odds.shape) < shared, of_task, generator.random(odds.shape))
    return 1 / (1 + ((1 - odds) / odds) ** factor), odds, (luck < odds).astype(float)


GROUPED = ((40, -0.4, 0.0), (100, -0.4, -0.6), (100, 0.0, 0.0))
"""Number of tasks, and the shift of the log-odds: by other criteria in the call, and further at the
last position.
"""


def changed(
    n_tasks: int, neighbours: float, order: float, generator: np.random.Generator
) -> dict[str, Floats]:
    """The change of decisions from single calls to groups: all, the first and the last third; shape
    (n_tasks, n).
    """
    odds = generator.normal(0, 1.5, (n_tasks, 18)) + generator.normal(0, 0.8, (n_tasks, 1))
    position = np.arange(18) / 17
    luck = generator.logistic(size=odds.shape)  # mostly shared by the single call and the group
    again = np.where(generator.random(odds.shape) < 0.9, luck, generator.logistic(size=odds.shape))
    change = (again < odds + neighbours + order * position).astype(float) - (luck < odds)
    return {
        "all": change,
        "first third": change[:, :6],
        "last third": change[:, 12:],
    }


def cells(true: float, estimates: Sequence[tuple[float, float, float]]) -> tuple[str, str, str]:
    """The truth, the mean of the estimates, and the share of intervals that contain the truth."""
    value, low, high = np.array(estimates).T
    return f"{true:.4f}", f"{value.mean():.4f}", f"{np.mean((low <= true) & (true <= high)):.1%}"


def neighbour_effects(n: int) -> Iterator[Sequence[object]]:
    """The coverage of the changes that `prbench neighbours` shows."""
    for n_tasks, neighbours, order in GROUPED:
        generator = np.random.default_rng(7)
        truth = changed(100_000, neighbours, order, np.random.default_rng(99))
        results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in truth}
        for _ in range(n):
            for name, change in changed(n_tasks, neighbours, order, generator).items():
                sums = {"sum_change": change.sum(axis=1), "n": np.full(n_tasks, change.shape[1])}
                (measured,) = change_of([], sums)
                result = measured["change"]
                results[name].append((result.value, result.ci_low, result.ci_high))
        for name, change in truth.items():
            yield n_tasks, neighbours, order, name, *cells(float(change.mean()), results[name])


def calibrations(n: int) -> Iterator[Sequence[object]]:
    """The coverage of the measures of calibration, and how often they exclude 0."""
    for factor, (n_tasks, shared) in itertools.product(FACTORS, WORLDS):
        # Another seed for each world: else one odd sample would show in all of them.
        generator = np.random.default_rng((7, n_tasks, round(10 * shared), round(10 * factor)))
        p, true_p, decided = world(30_000, shared, factor, np.random.default_rng(99))
        truth = {
            "brier": float(brier(sums_of(p, decided).sum(axis=0))),
            # Without the noise of decisions, so that it is 0 for the factor 1.
            "calibration_error": float(calibration_error(sums_of(p, true_p).sum(axis=0))),
        }
        results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in truth}
        for _ in range(n):
            p, _, decided = world(n_tasks, shared, factor, generator)
            sums = sums_of(p, decided)
            task, bin_ = (index.ravel() for index in np.indices(sums.shape[:2]))
            by_name = dict(zip(SUMS, sums.reshape(-1, len(SUMS)).T, strict=True))
            (measured,) = calibration_of(
                [{}],
                {
                    "task": task,
                    "figure": 0 * task,
                    "bin": bin_,
                    **by_name,
                },
            )
            for name, of_name in results.items():
                of_name.append(
                    (measured[name].value, measured[name].ci_low, measured[name].ci_high)
                )
        for name, of_name in results.items():
            excludes = f"{np.mean([low > 0 for _, low, _ in of_name]):.1%}"
            yield factor, n_tasks, shared, name, *cells(truth[name], of_name), excludes


def main() -> None:
    """Print both tables."""
    n = arguments(__doc__, replications=200).replications
    last = ("truth", "mean estimate", "interval covers")
    markdown(("tasks", "neighbours", "order", "under", *last), neighbour_effects(n))
    markdown(("factor", "tasks", "shared luck", "measure", *last, "excludes 0"), calibrations(n))


if __name__ == "__main__":
    main()
