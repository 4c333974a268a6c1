"""Coverage of the 95 % interval of a debiased score if almost all criteria of a task are met, or
almost none.

Each task draws the chance of its criteria from a skewed distribution; 10 % of the criteria are
negative. The judge calls a quarter of the unmet criteria met, and a twentieth of the met ones
unmet. Labels are drawn as `prbench export labelling --for` does. The interval by Student's t alone
is shown for comparison.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.debiased import corrected, estimate
from tasks.rules.statistics.intervals import student_quantile
from tasks.rules.statistics.sampling import (
    PRIOR_ERROR,
    sampling_probabilities,
    sampling_sizes,
)
from tests.benchmarks.debiased_coverage import Replication, Rubrics, systematic
from tests.benchmarks.figures import parse_arguments, print_markdown

Floats = NDArray[np.float64]
Dice = np.random.Generator
SHAPES = {
    "almost all met": (9.0, 0.3),
    "hardly any met": (0.15, 2.5),
    "all or nothing": (0.3, 0.3),
    "even": (2.0, 2.0),
}
"""The two parameters of the beta distribution of the tasks' chances."""
SIZES = ((40, 400), (100, 400), (300, 150))
"""Number of tasks, and of labels."""


def decided(
    shape: str,
    n_tasks: int,
    dice: np.random.Generator,
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The task, the contribution and people's decision of each verdict."""
    task = np.repeat(np.arange(n_tasks), dice.integers(5, 31, n_tasks))
    is_negative = dice.random(len(task)) < 0.1
    weight = dice.choice([10.0, 5.0, 2.0], len(task), p=[0.3, 0.35, 0.35])
    positive = np.maximum(
        np.bincount(task, np.where(is_negative, 0.0, weight), n_tasks), 1.0
    )
    chance = dice.beta(*SHAPES[shape], n_tasks)[task]
    people = dice.random(len(task)) < np.where(
        is_negative,
        0.3 * (1.0 - chance),
        chance,
    )
    return (
        task,
        np.where(is_negative, -weight, weight) / positive[task],
        people.astype(np.float64),
    )


def truth(shape: str, dice: np.random.Generator) -> float:
    """The true score, from 120,000 tasks."""
    means = []
    for _ in range(6):
        task, contribution, people = decided(shape, 20_000, dice)
        means.append(np.bincount(task, contribution * people, 20_000).mean())
    return float(np.mean(means))


def covered(
    shape: str,
    n_tasks: int,
    n_labels: int,
    true: float,
    dice: Dice,
) -> tuple[bool, bool, float]:
    """Return whether the interval and that by Student's t contain the true score, and the ratio of
    their widths.
    """
    task, contribution, people = decided(shape, n_tasks, dice)
    judge = np.where(
        dice.random(len(task)) < np.where(people == 1.0, 0.05, 0.25),
        1.0 - people,
        people,
    )
    nothing = np.zeros(len(task))
    rubrics = Rubrics(task, contribution, nothing, nothing, nothing)
    model = Replication(rubrics, people, judge, judge)
    size = sampling_sizes(contribution, np.full(len(task), PRIOR_ERROR))
    probability = sampling_probabilities(size, min(n_labels, len(task)))
    sample = systematic(probability, dice)
    sums = corrected(model.known, model.labels(sample, 1.0 / probability[sample]))
    estimated = estimate(sums)
    half = estimated.error * float(student_quantile(0.975, np.asarray(sums.degrees)))
    return (
        estimated.low <= true <= estimated.high,
        abs(estimated.mean - true) <= half,
        (estimated.high - estimated.low) / (2.0 * half),
    )


def main():
    n = parse_arguments(__doc__, replications=1_000).replications
    header = [
        "criteria",
        "tasks",
        "labels",
        "Student's t alone",
        "debiased",
        "relative width",
    ]
    print_markdown(header, (row for shape in SHAPES for row in rows(shape, n)))


def rows(shape: str, replications: int) -> Iterator[Sequence[object]]:
    """The lines of the table on a shape."""
    dice = np.random.default_rng(11)
    true = truth(shape, dice)
    for n_tasks, n_labels in SIZES:
        results = [
            covered(shape, n_tasks, n_labels, true, dice) for _ in range(replications)
        ]
        coverage, student_coverage, width = np.mean(results, axis=0)
        cells = f"{student_coverage:.1%}", f"{coverage:.1%}", f"{width:.2f}"
        yield shape, n_tasks, n_labels, *cells


if __name__ == "__main__":
    main()
