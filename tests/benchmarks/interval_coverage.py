"""Coverage of the 95 % interval of a mean over tasks, by method, world and number of tasks."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from tasks.rules.statistics import intervals
from tests.benchmarks.figures import parse_arguments, print_markdown

TASKS = (10, 20, 30, 50, 100, 300)
TRIALS = (1, 3)
NOISE = 0.1
"""Standard deviation of a trial around its task's effect."""
METHODS = (
    "percentile",
    "expanded",
    "BCa expanded",
    "bootstrap-t",
    "Student's t",
    "wider",
)
"""The last one is the method of `mean_intervals`."""
_AT_A_TIME = 250
_STEPS = (-0.3, -0.1, 0.05, 0.1, 0.2, 0.5)
"""Possible changes of a task's score by a flipped criterion."""
Effects = Callable[..., np.ndarray]
"""(random generator, shape) -> effects."""


@dataclass(frozen=True)
class World:
    """A distribution of task effects, with the true mean for a number of tasks."""

    effects: Effects
    mean: Callable[[int], float]
    noise: float

    def scores(
        self,
        n_tasks: int,
        trials: int,
        replications: int,
        seed: int,
    ) -> np.ndarray:
        """Task scores, means over trials: shape (n_tasks, replications)."""
        dice = np.random.default_rng(seed)
        shape = (n_tasks, replications)
        effects = self.effects(dice, shape)
        # The mean of T independent normal trials is one normal with its spread divided by the root
        # of T.
        if self.noise:
            effects = effects + dice.normal(0.0, self.noise / trials**0.5, size=shape)
        return effects


def sparse(n_others: float, size: Effects, mean: float) -> World:
    """Most tasks have 0, on average `n_others` have another value, as if the same responses were
    judged twice.
    """
    return World(
        lambda dice, shape: (
            (dice.random(shape) < n_others / shape[0]) * size(dice, shape)
        ),
        lambda n_tasks: mean * n_others / n_tasks,
        noise=0.0,
    )


def world(effects: Effects, mean: float, noise: float = 0.0) -> World:
    """A world whose mean is the same for any number of tasks."""
    return World(effects, lambda _: mean, noise)


WORLDS = {
    "symmetric": world(
        lambda dice, shape: dice.normal(0.4, 0.2, size=shape),
        0.4,
        NOISE,
    ),
    "left tail": world(
        lambda dice, shape: 1.4 * dice.beta(3.0, 1.0, size=shape) - 0.4,
        1.4 * 0.75 - 0.4,
        NOISE,
    ),
    "few near 1": world(
        lambda dice, shape: dice.beta(0.15, 0.85, size=shape),
        0.15,
        NOISE,
    ),
    "very few near 1": world(
        lambda dice, shape: dice.beta(0.1, 0.9, size=shape),
        0.1,
        NOISE,
    ),
}
_OTHERS: tuple[tuple[str, Effects, float], ...] = (
    ("by -1 or 1", lambda dice, shape: dice.choice([-1.0, 1.0], size=shape), 0.0),
    ("normal", lambda dice, shape: dice.normal(size=shape), 0.0),
    (
        "by steps",
        lambda dice, shape: dice.choice(_STEPS, size=shape),
        sum(_STEPS) / len(_STEPS),
    ),
    ("exponential", lambda dice, shape: dice.exponential(size=shape), 1.0),
)
ROUGH_WORLDS = {
    "t, 3 degrees": world(lambda dice, shape: dice.standard_t(3, size=shape), 0.0),
    "t, 5 degrees": world(lambda dice, shape: dice.standard_t(5, size=shape), 0.0),
    "exponential": world(lambda dice, shape: dice.exponential(size=shape), 1.0),
    "lognormal": world(
        lambda dice, shape: dice.lognormal(0.0, 1.0, size=shape),
        float(np.exp(0.5)),
    ),
    "four in five 0": world(
        lambda dice, shape: (
            (dice.random(shape) < 0.2) * dice.beta(2.0, 2.0, size=shape)
        ),
        0.1,
    ),
    **{
        f"{n} differ, {name}": sparse(n, size, mean)
        for n in (3.3, 8, 24)
        for name, size, mean in _OTHERS
    },
}
"""Worlds with few tasks that differ, and with tails as heavy as a benchmark may have."""
MIXTURES = {
    f"{100 * share:.0f} % differ by 0.5, others little": world(
        lambda dice, shape, share=share: 0.5 * (dice.random(shape) < share),
        0.5 * share,
        0.05,
    )
    for share in (0.03, 0.05, 0.1)
}
"""Worlds with too short intervals: a sample may have none of the tasks that differ, and the others
vary little.
"""


def percentiles(
    scores: np.ndarray,
    samples: np.ndarray,
    level: float = 0.95,
) -> dict[str, np.ndarray]:
    """Intervals by the three methods that use quantiles of the resampled means, each of shape
    (n_columns, 2).
    """
    n, columns = scores.shape
    mean = scores.mean(axis=0)
    means = np.sort(scores.T.astype(np.float32) @ samples.T / n)
    below = ndtri(np.clip((means < mean[:, None]).mean(axis=1), 1e-4, 1 - 1e-4))
    tail = float(intervals.expanded_tails(np.asarray(float(n)), level))
    by_method = {
        "percentile": intervals.quantile_pairs(
            means, np.full(columns, (1 - level) / 2)
        ),
        "expanded": intervals.quantile_pairs(means, np.full(columns, tail)),
    }
    deviations = scores - mean
    bend = (deviations**3).sum(axis=0) / (6 * (deviations**2).sum(axis=0) ** 1.5)
    ends = []
    for z in (ndtri(tail), -ndtri(tail)):
        tail_level = ndtr(below + (below + z) / (1 - bend * (below + z)))
        ends.append(intervals.quantile_pairs(means, tail_level)[:, 0])
    return by_method | {"BCa expanded": np.stack(ends, axis=1)}


def halves(
    scores: np.ndarray,
    samples: np.ndarray,
    level: float = 0.95,
) -> dict[str, np.ndarray]:
    """The two intervals that the project combines, each alone: bootstrap-t, and Student's t with n
    - 1 degrees.
    """
    n, columns = scores.shape
    student_t = intervals.studentised(
        scores,
        np.ones_like(scores),
        np.full(columns, n - 1),
        samples,
    )
    student = float(intervals.student_quantile((1 + level) / 2, np.asarray(n - 1.0)))
    tails = np.full(columns, (1 - level) / 2)
    low_step, high_step = intervals.quantile_pairs(student_t.steps, tails).T
    widest = intervals.WIDEST * student
    low = student_t.ratio - student_t.error * np.clip(high_step, 0, widest)
    high = student_t.ratio + student_t.error * np.clip(-low_step, 0, widest)
    bounded_low = np.maximum(low, scores.min(axis=0))
    bounded_high = np.minimum(high, scores.max(axis=0))
    half = student * scores.std(axis=0, ddof=1) / n**0.5
    return {
        "bootstrap-t": np.stack([bounded_low, bounded_high], axis=1),
        "Student's t": np.stack(
            [student_t.ratio - half, student_t.ratio + half], axis=1
        ),
    }


def every_method(scores: np.ndarray, samples: np.ndarray) -> dict[str, np.ndarray]:
    """The intervals of each column by each method; the project's own method is the last."""
    wider = {"wider": intervals.mean_intervals(scores, sampled=samples)}
    return percentiles(scores, samples) | halves(scores, samples) | wider


class Cell(NamedTuple):
    """A cell of the table: coverage in %, and mean width relative to Student's t."""

    covered_percent: float
    width: float


def cells(
    world: World,
    n_tasks: int,
    trials: int,
    replications: int,
    samples: np.ndarray,
    seed: int,
) -> tuple[float, dict[str, Cell]]:
    """Return the share of samples, in %, with enough differing tasks for an interval, and the cell
    of each method, over these samples.
    """
    scores = world.scores(n_tasks, trials, replications, seed)
    scores = scores[:, intervals.n_differing(scores) >= intervals.FEWEST_DIFFERING]
    n_samples = scores.shape[1]
    parts = defaultdict(list)
    for start in range(0, n_samples, _AT_A_TIME):
        part = scores[:, start : start + _AT_A_TIME]
        for method, ends in every_method(part, samples).items():
            parts[method].append(ends)
    student_quantile = intervals.student_quantile(0.975, n_tasks - 1.0)
    student_width = 2 * student_quantile * scores.std(axis=0, ddof=1) / n_tasks**0.5
    by_method = {}
    for method, ends in parts.items():
        low, high = np.concatenate(ends).T
        is_covered = (low <= world.mean(n_tasks)) & (world.mean(n_tasks) <= high)
        width = (high - low).mean() / student_width.mean()
        by_method[method] = Cell(100 * is_covered.mean(), width)
    return 100 * n_samples / replications, by_method


def rows(
    replications: int,
    resamples: int,
    tasks: tuple[int, ...] = TASKS,
    trials: tuple[int, ...] = TRIALS,
    worlds: dict[str, World] = WORLDS,
) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table; all replications with the same number of tasks share the
    draws.
    """
    for n_tasks in tasks:
        samples = intervals.draws(n_tasks, resamples)
        for number, (name, world) in enumerate(worlds.items()):
            for n_trials in trials:
                seed = 1_000 * n_tasks + 10 * number + n_trials
                share, by_method = cells(
                    world,
                    n_tasks,
                    n_trials,
                    replications,
                    samples,
                    seed,
                )
                texts = []
                for method in METHODS:
                    cell = by_method[method]
                    texts.append(f"{cell.covered_percent:.1f} ({cell.width:.2f})")
                yield str(n_tasks), name, str(n_trials), f"{share:.0f}", *texts


def main():
    """Simulate and print: coverage in %, and in brackets the mean width relative to Student's t."""
    resamples = (10_000, "bootstrap resamples of each")
    options = parse_arguments(
        __doc__,
        replications=(4_000, "samples of tasks a cell"),
        resamples=resamples,
    )
    rough = ((50, 100, 300), (1,))
    tables = (
        rows(options.replications, options.resamples),
        rows(options.replications, options.resamples, *rough, ROUGH_WORLDS),
        rows(options.replications, options.resamples, *rough, MIXTURES),
    )
    print_markdown(("tasks", "world", "trials", "given", *METHODS), chain(*tables))


if __name__ == "__main__":
    main()
