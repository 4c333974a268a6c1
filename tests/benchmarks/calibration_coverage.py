"""How often intervals contain the true calibration and neighbour effects of a made-up decision
model, and how far the estimates are off.

The model's log-odds are the true ones times a factor: 1 is perfect calibration, above 1 the model
is overconfident. Decisions of a task are correlated: a share of them has the same luck. In a group,
the other criteria shift the log-odds by a constant, and later positions shift them further.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.measures.agreement import SUMS, calibration_of, change_of
from tasks.measures.measure import MeasureResult
from tasks.rules.statistics.calibration import BINS, brier, calibration_error
from tests.benchmarks.figures import parse_arguments, print_markdown

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
    n_tasks: int,
    shared: float,
    factor: float,
    generator: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """The model's probabilities, the true ones, and the decisions, each of shape (n_tasks,
    CRITERIA).
    """
    odds = generator.beta(1.2, 1.2, (n_tasks, CRITERIA))
    task_luck = generator.random((n_tasks, 1))
    is_shared = generator.random(odds.shape) < shared
    luck = np.where(is_shared, task_luck, generator.random(odds.shape))
    return 1 / (1 + ((1 - odds) / odds) ** factor), odds, (luck < odds).astype(float)


GROUPED = ((40, -0.4, 0.0), (100, -0.4, -0.6), (100, 0.0, 0.0))
"""Number of tasks, and the shift of the log-odds: by other criteria in the call, and further at the
last position.
"""


def changed(
    n_tasks: int,
    neighbours: float,
    order: float,
    generator: np.random.Generator,
) -> dict[str, Floats]:
    """The change of decisions from single calls to groups: all, the first and the last third; shape
    (n_tasks, n).
    """
    odds = generator.normal(0, 1.5, (n_tasks, 18)) + generator.normal(
        0,
        0.8,
        (n_tasks, 1),
    )
    position = np.arange(18) / 17
    luck = generator.logistic(
        size=odds.shape
    )  # mostly shared by the single call and the group
    again = np.where(
        generator.random(odds.shape) < 0.9,
        luck,
        generator.logistic(size=odds.shape),
    )
    change = (again < odds + neighbours + order * position).astype(float) - (
        luck < odds
    )
    return {
        "all": change,
        "first third": change[:, :6],
        "last third": change[:, 12:],
    }


def cells(true: float, measured: Sequence[MeasureResult]) -> tuple[str, str, str]:
    """Return the truth, the mean of the estimates, and the share of intervals that contain the
    truth.
    """
    mean = np.mean([estimate.value for estimate in measured])
    is_covered = [
        estimate.ci_low <= true <= estimate.ci_high for estimate in measured
    ]
    return f"{true:.4f}", f"{mean:.4f}", f"{np.mean(is_covered):.1%}"


def neighbour_effects(replications: int) -> Iterator[Sequence[object]]:
    """Yield the coverage of the changes that `prbench neighbours` shows."""
    for n_tasks, neighbours, order in GROUPED:
        generator = np.random.default_rng(7)
        measured = defaultdict(list)
        for _ in range(replications):
            for name, change in changed(
                n_tasks, neighbours, order, generator
            ).items():
                sums = {
                    "sum_change": change.sum(axis=1),
                    "n": np.full(n_tasks, change.shape[1]),
                }
                (values,) = change_of([], sums)
                measured[name].append(values["change"])
        truth = changed(100_000, neighbours, order, np.random.default_rng(99))
        for name, change in truth.items():
            yield (
                n_tasks,
                neighbours,
                order,
                name,
                *cells(float(change.mean()), measured[name]),
            )


def measured_calibration(sums: Floats) -> dict[str, MeasureResult]:
    """Return the project's measures of calibration of sums by task and bin."""
    task, bin_index = np.indices(sums.shape[:2]).reshape(2, -1)
    columns = dict(zip(SUMS, sums.reshape(-1, len(SUMS)).T, strict=True))
    columns |= {"task": task, "figure": np.zeros_like(task), "bin": bin_index}
    (values,) = calibration_of([{}], columns)
    return values


def calibrations(replications: int) -> Iterator[Sequence[object]]:
    """Yield the coverage of the measures of calibration, and how often they exclude 0."""
    for factor, (n_tasks, shared) in itertools.product(FACTORS, WORLDS):
        p, true_p, decided = world(30_000, shared, factor, np.random.default_rng(99))
        truth = {
            "brier": float(brier(sums_of(p, decided).sum(axis=0))),
            # Without the noise of decisions, so that it is 0 for the factor 1.
            "calibration_error": float(
                calibration_error(sums_of(p, true_p).sum(axis=0))
            ),
        }
        # Another seed for each world: else one odd sample would show in all of them.
        generator = np.random.default_rng(
            (7, n_tasks, round(10 * shared), round(10 * factor))
        )
        samples = []
        for _ in range(replications):
            p, _, decided = world(n_tasks, shared, factor, generator)
            samples.append(measured_calibration(sums_of(p, decided)))
        for name, true in truth.items():
            measured = [sample[name] for sample in samples]
            excludes = np.mean([estimate.ci_low > 0 for estimate in measured])
            yield (
                factor,
                n_tasks,
                shared,
                name,
                *cells(true, measured),
                f"{excludes:.1%}",
            )


def main():
    """Print both tables."""
    n = parse_arguments(__doc__, replications=200).replications
    columns = ("truth", "mean estimate", "interval covers")
    print_markdown(
        ("tasks", "neighbours", "order", "under", *columns), neighbour_effects(n)
    )
    print_markdown(
        ("factor", "tasks", "shared luck", "measure", *columns, "excludes 0"),
        calibrations(n),
    )


if __name__ == "__main__":
    main()
