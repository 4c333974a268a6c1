"""Coverage of the 95 % interval of the share of criteria that people agree with.

Populations of criteria are made up: tasks with 7 to 30 criteria in four categories. People agree
with rarer categories less often. Whether they agree is correlated among the criteria of one task
and category, and independent of its other categories. Samples are drawn and weighted by the
project's own code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.rules.statistics.intervals import draws, ratio_intervals
from tasks.rules.statistics.sampling import stratified_sample
from tests.benchmarks.figures import parse_arguments, print_markdown

CATEGORY_SHARES = np.array([0.5, 0.3, 0.15, 0.05])
"""Shares of criteria in four categories."""
DESIGNS = ("simple random", "by category", "whole tasks")


@dataclass(frozen=True)
class World:
    """The distribution of criteria.

    Attributes:
        agreeing: the chance that people agree with a criterion, by category.
        clustering: the correlation of the decisions on two criteria of one task and category; those
            of two categories are independent, so that over all criteria of a task it is lower.
        n_tasks: tasks in the population.
        n_sampled: number of reviewed criteria; approximate if whole tasks are sampled.
    """

    agreeing: tuple[float, ...] = (0.97, 0.95, 0.88, 0.76)
    clustering: float = 0.1
    n_tasks: int = 300
    n_sampled: int = 300

    @property
    def share(self) -> float:
        """The true share of criteria that people agree with."""
        return float(CATEGORY_SHARES @ np.array(self.agreeing))

    def population(
        self, dice: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Task, category and decision of every criterion."""
        sizes = dice.integers(7, 31, size=self.n_tasks)
        task = np.repeat(np.arange(self.n_tasks), sizes)
        category = dice.choice(
            len(CATEGORY_SHARES), size=len(task), p=CATEGORY_SHARES
        )
        # Beta-binomial: the criteria of a task and category share one chance, which is drawn for
        # each task and category independently.
        mean = np.array(self.agreeing)
        strength = 1.0 / self.clustering - 1.0
        chance = dice.beta(
            mean * strength,
            (1.0 - mean) * strength,
            size=(self.n_tasks, len(CATEGORY_SHARES)),
        )
        return task, category, dice.random(len(task)) < chance[task, category]


def estimates(
    world: World,
    design: str,
    replications: int,
    resamples: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """The estimated share and the ends of its interval, for each replication; NaN without an
    interval.
    """
    dice = np.random.default_rng(seed)
    for replication in range(replications):
        task, category, agreed = world.population(dice)
        index, weight = _sampled(world, design, task, category, replication)
        weights = np.bincount(task[index], weights=weight, minlength=world.n_tasks)
        agreed_weights = np.bincount(
            task[index],
            weights=weight * agreed[index],
            minlength=world.n_tasks,
        )
        is_sampled = weights > 0
        # One seed for all replications, as the figures of the project have a fixed one.
        task_draws = draws(int(is_sampled.sum()), resamples, seed)
        ((low, high),) = ratio_intervals(
            agreed_weights[is_sampled, None],
            weights[is_sampled, None],
            sampled=task_draws,
        )
        yield np.array([agreed_weights.sum() / weights.sum(), low, high])


def _sampled(
    world: World,
    design: str,
    task: np.ndarray,
    category: np.ndarray,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the sampled criteria, and one over the probability of each."""
    if design == "whole tasks":
        n_tasks = round(world.n_sampled / len(task) * world.n_tasks)
        names = [str(index) for index in range(world.n_tasks)]
        sample = stratified_sample(names, ["all"] * world.n_tasks, n_tasks, seed)
        index = np.flatnonzero(np.isin(task, [unit.position for unit in sample]))
        return index, np.full(len(index), 1.0 / sample[0].probability)
    names = [str(index) for index in range(len(task))]
    strata = ["all"] * len(task)
    if design == "by category":
        strata = [str(label) for label in category]
    sample = stratified_sample(names, strata, world.n_sampled, seed)
    positions = np.array([unit.position for unit in sample])
    return positions, np.array([1.0 / unit.probability for unit in sample])


def coverage(
    world: World,
    design: str,
    replications: int,
    resamples: int,
    seed: int = 1,
) -> tuple[float, float, float]:
    """The coverage of the true share, the share of samples with an interval, and the bias of the
    estimate.
    """
    results = np.array(list(estimates(world, design, replications, resamples, seed)))
    estimate, low, high = results.T
    has_interval = ~np.isnan(low)
    is_covered = (low <= world.share) & (world.share <= high)
    return (
        float(is_covered[has_interval].mean()),
        float(has_interval.mean()),
        float(estimate.mean() - world.share),
    )


WORLDS = {
    "as in the paper, 300 criteria": World(),
    "as in the paper, 1,000 criteria": World(n_sampled=1_000),
    "tasks are correlated more": World(clustering=0.3),
    "few agree": World(agreeing=(0.8, 0.7, 0.6, 0.3)),
    "100 criteria": World(n_sampled=100),
}


def rows(replications: int, resamples: int) -> Iterator[Sequence[str]]:
    """Yield the lines of the table; its column "given" is the share of samples with an interval."""
    for (name, world), design in product(WORLDS.items(), DESIGNS):
        covered, reported, bias = coverage(world, design, replications, resamples)
        texts = f"{covered:.1%}", f"{reported:.0%}", f"{bias:+.4f}"
        yield name, design, f"{world.share:.3f}", *texts


def main():
    """Print the coverage of every world and design."""
    options = parse_arguments(__doc__, replications=1_000, resamples=1_000)
    header = ["world", "design", "true share", "coverage", "given", "bias"]
    print_markdown(header, rows(options.replications, options.resamples))


if __name__ == "__main__":
    main()
