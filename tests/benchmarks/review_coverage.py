"""Coverage of the 95 % interval of the share of criteria that people agree with.

Populations of criteria are made up: tasks with 7 to 30 criteria, whose chance of being agreed with
is correlated within a task and lower in rarer categories. Samples are drawn and weighted by the
project's own code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.rules.statistics.intervals import draws, ratio_intervals
from tasks.rules.statistics.sampling import stratified_sample
from tests.benchmarks.figures import arguments, markdown

SHARES = np.array([0.5, 0.3, 0.15, 0.05])
"""Shares of criteria in four categories."""
DESIGNS = ("simple random", "by category", "whole tasks")


@dataclass(frozen=True)
class World:
    """The distribution of criteria.

    Attributes:
        agreeing: the chance that people agree with a criterion, by category.
        clustering: the correlation of the chances of a task's criteria.
        n_tasks: tasks in the population.
        n_sampled: number of reviewed criteria; approximate if whole tasks are sampled.
    """

    agreeing: tuple[float, ...] = (0.97, 0.95, 0.88, 0.76)
    clustering: float = 0.1
    n_tasks: int = 300
    n_sampled: int = 300

    @property
    def share(self) -> float:
        """The true share."""
        return float(SHARES @ np.array(self.agreeing))

    def population(self, dice: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Task, category and decision of every criterion."""
        sizes = dice.integers(7, 31, size=self.n_tasks)
        task = np.repeat(np.arange(self.n_tasks), sizes)
        category = dice.choice(len(SHARES), size=len(task), p=SHARES)
        # Beta-binomial: one uniform draw a task moves the chances of all its criteria up or down.
        mean = np.array(self.agreeing)
        strength = 1.0 / self.clustering - 1.0
        chance = dice.beta(
            mean * strength, (1.0 - mean) * strength, size=(self.n_tasks, len(SHARES))
        )
        return task, category, dice.random(len(task)) < chance[task, category]


def estimates(
    world: World, design: str, replications: int, resamples: int, seed: int
) -> Iterator[np.ndarray]:
    """The estimated share and the ends of its interval, for each replication; NaN without an
    interval.
    """
    dice = np.random.default_rng(seed)
    for replication in range(replications):
        task, category, agreed = world.population(dice)
        index, weight = _sampled(world, design, task, category, replication)
        n = world.n_tasks
        over = np.bincount(task[index], weights=weight * agreed[index], minlength=n)
        under = np.bincount(task[index], weights=weight, minlength=n)
        seen = under > 0
        sample = draws(int(seen.sum()), resamples, seed)
        low, high = ratio_intervals(over[seen, None], under[seen, None], sampled=sample)[0]
        yield np.array([over.sum() / under.sum(), low, high])


def _sampled(
    world: World, design: str, task: np.ndarray, category: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the sampled criteria, and one over the probability of each."""
    if design == "whole tasks":
        n_tasks = round(world.n_sampled / len(task) * world.n_tasks)
        sample = stratified_sample(
            [str(i) for i in range(world.n_tasks)], ["all"] * world.n_tasks, n_tasks, seed
        )
        index = np.flatnonzero(np.isin(task, [each.position for each in sample]))
        return index, np.full(len(index), 1.0 / sample[0].probability)
    strata = [str(each) for each in category] if design == "by category" else ["all"] * len(task)
    sample = stratified_sample([str(i) for i in range(len(task))], strata, world.n_sampled, seed)
    return np.array([each.position for each in sample]), np.array(
        [1.0 / each.probability for each in sample]
    )


def coverage(
    world: World, design: str, replications: int, resamples: int, seed: int = 1
) -> tuple[float, float, float]:
    """The coverage of the true share, the share of samples with an interval, and the bias of the
    estimate.
    """
    results = np.array(list(estimates(world, design, replications, resamples, seed)))
    given = ~np.isnan(results[:, 1])
    holds = (results[given, 1] <= world.share) & (world.share <= results[given, 2])
    return float(holds.mean()), float(given.mean()), float(results[:, 0].mean() - world.share)


WORLDS = {
    "as in the paper, 300 criteria": World(),
    "as in the paper, 1,000 criteria": World(n_sampled=1_000),
    "tasks are correlated more": World(clustering=0.3),
    "few agree": World(agreeing=(0.8, 0.7, 0.6, 0.3)),
    "100 criteria": World(n_sampled=100),
}


def main() -> None:
    """Print the coverage of every world and design."""
    given = arguments(__doc__, replications=1_000, resamples=1_000)
    rows = (row(*cell, given.replications, given.resamples) for cell in product(WORLDS, DESIGNS))
    markdown(["world", "design", "true share", "coverage", "given", "bias"], rows)


def row(name: str, design: str, replications: int, resamples: int) -> Sequence[str]:
    """A line of the table."""
    holds, given, bias = coverage(WORLDS[name], design, replications, resamples)
    return name, design, f"{WORLDS[name].share:.3f}", f"{holds:.1%}", f"{given:.0%}", f"{bias:+.4f}"


if __name__ == "__main__":
    main()
