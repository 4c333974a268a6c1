"""How often a 95 % interval of a mean over tasks holds the true mean, by method, world and number of tasks."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from tasks.rules.statistics import draws, expanded_tails, mean_intervals, quantile_pairs, student_quantile

TASKS = (10, 20, 30, 50, 100, 300)
TRIALS = (1, 3)
NOISE = 0.1
"""Standard deviation of a trial about its task's effect."""
METHODS = ("percentile", "expanded", "BCa expanded", "bootstrap-t")
_AT_A_TIME = 250


@dataclass(frozen=True)
class World:
    """Where task effects come from, and their true mean."""

    effects: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    mean: float

    def scores(self, n_tasks: int, trials: int, replications: int, seed: int) -> np.ndarray:
        """Task scores, means over trials: shape (n_tasks, replications)."""
        dice = np.random.default_rng(seed)
        shape = (n_tasks, replications)
        # The mean of T independent normal trials is one normal with its spread divided by the root of T.
        return self.effects(dice, shape) + dice.normal(0.0, NOISE / trials**0.5, size=shape)


WORLDS = {
    "symmetric": World(lambda dice, shape: dice.normal(0.4, 0.2, size=shape), 0.4),
    "left tail": World(lambda dice, shape: 1.4 * dice.beta(3.0, 1.0, size=shape) - 0.4, 1.4 * 0.75 - 0.4),
    "few near 1": World(lambda dice, shape: dice.beta(0.15, 0.85, size=shape), 0.15),
    "very few near 1": World(lambda dice, shape: dice.beta(0.1, 0.9, size=shape), 0.1),
}


def percentiles(scores: np.ndarray, drawn: np.ndarray, level: float = 0.95) -> dict[str, np.ndarray]:
    """Intervals by the three methods that read quantiles off the resampled means, each of shape (n_columns, 2)."""
    n, columns = scores.shape
    mean = scores.mean(axis=0)
    means = (scores.T.astype(np.float32) @ drawn.T / np.float32(n)).astype(np.float64)
    below = ndtri(np.clip((means < mean[:, None]).mean(axis=1), 1e-4, 1 - 1e-4))
    tail = float(expanded_tails(np.asarray(float(n)), level))
    found = {
        "percentile": quantile_pairs(means, np.full(columns, (1 - level) / 2)),
        "expanded": quantile_pairs(means, np.full(columns, tail)),
    }
    off = scores - mean
    bend = (off**3).sum(axis=0) / (6 * (off**2).sum(axis=0) ** 1.5)
    ends = []
    for z in (ndtri(tail), -ndtri(tail)):
        place = ndtr(below + (below + z) / (1 - bend * (below + z)))
        ends.append(quantile_pairs(means, place)[:, 0])
    return found | {"BCa expanded": np.stack(ends, axis=1)}


def cell(world: World, n_tasks: int, trials: int, replications: int, drawn: np.ndarray, seed: int) -> dict[str, tuple]:
    """Method -> (coverage in %, the mean width by that of Student's t) of one cell of the table."""
    scores = world.scores(n_tasks, trials, replications, seed)
    parts: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for start in range(0, replications, _AT_A_TIME):
        some = scores[:, start : start + _AT_A_TIME]
        for method, found in (percentiles(some, drawn) | {"bootstrap-t": mean_intervals(some, drawn=drawn)}).items():
            parts[method].append(found)
    student = 2 * student_quantile(0.975, n_tasks - 1.0) * scores.std(axis=0, ddof=1) / n_tasks**0.5
    figures = {}
    for method, several in parts.items():
        low, high = np.concatenate(several).T
        covered = (low <= world.mean) & (world.mean <= high)
        figures[method] = (100 * covered.mean(), (high - low).mean() / student.mean())
    return figures


def rows(replications: int, resamples: int, tasks: tuple[int, ...] = TASKS) -> Iterator[tuple[str, ...]]:
    """The lines of the table; the draws are shared by all replications of a number of tasks."""
    for n_tasks in tasks:
        drawn = draws(n_tasks, resamples)
        for number, (name, world) in enumerate(WORLDS.items()):
            for trials in TRIALS:
                found = cell(world, n_tasks, trials, replications, drawn, seed=1_000 * n_tasks + 10 * number + trials)
                shown = (f"{coverage:.1f} ({width:.2f})" for coverage, width in found.values())
                yield (str(n_tasks), name, str(trials), *shown)


def main() -> None:
    """Simulate and print: coverage in %, and in brackets the mean width by that of Student's t."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.interval_coverage", description=__doc__)
    parser.add_argument("--replications", type=int, default=4_000, help="samples of tasks a cell")
    parser.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples of each")
    asked = parser.parse_args()
    print("| " + " | ".join(("tasks", "world", "trials", *METHODS)) + " |")
    print("|" + "---|" * (3 + len(METHODS)))
    for line in rows(asked.replications, asked.resamples):
        print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
