"""Coverage and width of the 95 % interval of a debiased score.

Rubrics are made up, with people's decisions and those of a judge that errs in one of several ways;
a part of the verdicts is labelled, chosen uniformly or as `prbench export labelling --for` chooses.
Estimates and probabilities are the project's own code; the true score is the mean of the
probabilities that the decisions are drawn with.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics import debiased
from tasks.rules.statistics.sampling import (
    expected_errors,
    group_errors,
    inclusion_probabilities,
    sizes,
)
from tests.benchmarks.figures import arguments, markdown

Floats = NDArray[np.float64]
Errors = Callable[["Rubrics", np.random.Generator], tuple[Floats, Floats]]
"""The judge's chances of calling an unmet verdict met, and a met one unmet."""
N_TASKS = 300
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
CATEGORIES = 5
COLUMNS = ("alone, uniform", "uniform", "alone, chosen", "chosen", "two sheets")


class Rubrics(NamedTuple):
    """Verdicts of a model, one entry a verdict: task, contribution, category, chance of being met,
    and length.
    """

    task: NDArray[np.int64]
    contribution: Floats
    category: NDArray[np.int64]
    chance: Floats
    length: Floats

    def task_values(self, values: Floats, n_tasks: int = N_TASKS) -> Floats:
        """The score of each task for these decisions."""
        return np.bincount(self.task, self.contribution * values, n_tasks)


def rubrics(
    dice: np.random.Generator, n_tasks: int = N_TASKS, *, is_heavy: bool = False
) -> Rubrics:
    """Tasks with 7 to 30 criteria, 7 % of them negative, whose decisions are correlated within a
    task.
    """
    n = dice.integers(7, 31, n_tasks)
    task = np.repeat(np.arange(n_tasks), n)
    weight = (
        np.minimum(np.ceil(2 * dice.pareto(1.2, len(task)) + 1), 200)
        if is_heavy
        else dice.integers(1, 11, len(task))
    )
    is_negative = dice.random(len(task)) < 0.07
    is_negative[np.concatenate([[0], np.cumsum(n)[:-1]])] = (
        False  # every task has a positive criterion
    )
    length = dice.normal(size=n_tasks)
    ease = dice.normal(size=n_tasks)
    chance = 1 / (
        1 + np.exp(-(0.3 + ease[task] + 0.3 * length[task] + dice.normal(size=len(task))))
    )
    positive = np.bincount(task, np.where(is_negative, 0, weight), n_tasks)
    return Rubrics(
        task,
        np.where(is_negative, -1, 1) * weight / positive[task],
        dice.integers(0, CATEGORIES, len(task)),
        np.where(is_negative, 0.3 * chance, chance),
        length[task],
    )


def _by_category(of: Rubrics, dice: np.random.Generator) -> tuple[Floats, Floats]:
    return (
        np.array([0.05, 0.3, 0.1, 0.4, 0.02])[of.category],
        np.array([0.2, 0.05, 0.1, 0.02, 0.3])[of.category],
    )


def _by_length(of: Rubrics, dice: np.random.Generator) -> tuple[Floats, Floats]:
    long = 1 / (1 + np.exp(-2 * of.length))
    return 0.5 * long, 0.4 * (1 - long)


def _within_tasks(of: Rubrics, dice: np.random.Generator) -> tuple[Floats, Floats]:
    is_bad = (dice.random(of.task.max() + 1) < 0.25)[of.task]
    return np.where(is_bad, 0.8, 0.03), np.where(is_bad, 0.0, 0.05)


def _constant(up: float, down: float) -> Errors:
    return lambda of, dice: (np.full(len(of.task), up), np.full(len(of.task), down))


@dataclass(frozen=True)
class World:
    """The errors of a judge; `is_heavy`: weights have a heavy tail."""

    errors: Errors
    is_heavy: bool = False

    @property
    def truth(self) -> float:
        """The true score."""
        return _truth(self.is_heavy)


WORLDS = {
    "biased by category": World(_by_category),
    "lenient with this model": World(_constant(0.35, 0.05)),
    "biased by length": World(_by_length),
    "wrong in a quarter of tasks": World(_within_tasks),
    "wrong in 2 %, all one way": World(_constant(0.045, 0.0)),
    "wrong in 2 %, both ways": World(_constant(0.02, 0.02)),
    "noise": World(_constant(0.5, 0.5)),
    "perfect": World(_constant(0.0, 0.0)),
    "by category, heavy weights": World(_by_category, is_heavy=True),
}


@cache
def _truth(is_heavy: bool, n_tasks: int = 400_000) -> float:
    dice = np.random.default_rng(3)
    means = []
    for _ in range(n_tasks // 20_000):
        sample = rubrics(dice, 20_000, is_heavy=is_heavy)
        means.append(sample.task_values(sample.chance, 20_000).mean())
    return float(np.mean(means))


class Replication(NamedTuple):
    """A model's tasks, decided by people and two judges; the second judge only shows where judges
    disagree.
    """

    rubrics: Rubrics
    people: Floats
    judge: Floats
    second: Floats

    @property
    def known(self) -> debiased.KnownTasks:
        """The data known without labels."""
        of = self.rubrics
        n = int(self.rubrics.task.max()) + 1
        positive, negative = (
            np.bincount(of.task, sign * np.maximum(sign * of.contribution, 0)) for sign in (1, -1)
        )
        return debiased.KnownTasks(np.zeros(n), positive, negative, of.task_values(self.judge, n))

    def labels(self, indices: NDArray[np.int64], factors: Floats) -> debiased.Labels:
        """The labels of some verdicts."""
        of = self.rubrics
        own = of.task[indices], of.contribution[indices], self.people[indices], self.judge[indices]
        return debiased.Labels(*own, factors)


def replication(world: World, dice: np.random.Generator) -> Replication:
    """A made-up model with its judges; some worlds have a judge whose decisions are pure noise."""
    sample = rubrics(dice, is_heavy=world.is_heavy)
    people = (dice.random(len(sample.task)) < sample.chance).astype(float)
    up, down = world.errors(sample, dice)

    def judged() -> Floats:
        is_wrong = dice.random(len(people)) < np.where(people == 1, down, up)
        return np.where(is_wrong, 1 - people, people)

    return Replication(sample, people, judged(), judged())


def systematic(probabilities: Floats, dice: np.random.Generator) -> NDArray[np.int64]:
    """Like `systematic_sample`, but with a random generator, since hashing thousands of keys takes
    too long.
    """
    order = dice.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    start = dice.random()
    ends[-1] = round(ends[-1])
    return np.sort(order[np.diff(np.floor(ends - start), prepend=np.floor(-start)) > 0])


def chosen(
    of: Replication, n: int, known: NDArray[np.int64], dice: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Verdicts drawn as a sheet draws them, and the probability of every verdict (1 if it already
    has a label).
    """
    groups = of.rubrics.category
    squared = (of.people - of.judge)[known] ** 2
    disagreement = (of.judge - of.second) ** 2
    errors = expected_errors(
        group_errors(groups[known], squared, groups), disagreement, np.ones(len(groups))
    )
    free = np.setdiff1d(np.arange(len(groups)), known)
    probabilities = np.ones(len(groups))
    probabilities[free] = inclusion_probabilities(
        sizes(of.rubrics.contribution[free], errors[free]), n
    )
    return free[systematic(probabilities[free], dice)], probabilities


def uniform(of: Replication, n: int, dice: np.random.Generator) -> debiased.Labels:
    """A simple random sample of labels."""
    size = len(of.people)
    return of.labels(np.sort(dice.choice(size, n, replace=False)), np.full(n, size / n))


def one_sheet(of: Replication, n: int, dice: np.random.Generator) -> debiased.Labels:
    """The labels of one drawn sheet."""
    indices, probabilities = chosen(of, n, np.array([], dtype=np.int64), dice)
    return of.labels(indices, 1 / probabilities[indices])


def two_sheets(of: Replication, n: int, dice: np.random.Generator) -> debiased.Labels:
    """The labels of two sheets, half of them each; the second is drawn with the errors that the
    first showed.
    """
    none = np.array([], dtype=np.int64)
    size = len(of.people)
    first, before = chosen(of, n // 2, none, dice)
    second, after = chosen(of, n - n // 2, first, dice)
    densities = np.array([n // 2 / size, (n - n // 2) / (size - n // 2)])
    factors = np.zeros((2, size))
    factors[0, first] = 1 / before[first]
    factors[1, second] = 1 / after[second]
    factors[1, first] = 1.0
    factor = densities @ factors / densities.sum()
    indices = np.flatnonzero(factor)
    return of.labels(indices, factor[indices])


DESIGNS = {
    "uniform": uniform,
    "chosen": one_sheet,
    "two sheets": two_sheets,
}


class Outcome(NamedTuple):
    """The result of a design, with a judge or without: coverage, share with a figure, mean width,
    and bias.
    """

    coverage: float
    given: float
    width: float
    bias: float


def outcomes(
    world: World,
    n: int,
    replications: int,
    designs: tuple[str, ...] = tuple(DESIGNS),
    seed: int = 1,
) -> dict[str, Outcome]:
    """Design, or `alone, design` (labels alone), -> its outcome."""
    estimates: dict[str, list[tuple[float, float, float]]] = {}
    refused = dict.fromkeys(designs, 0)
    for number in range(replications):
        dice = np.random.default_rng([seed, number, n])
        of = replication(world, dice)
        for design in designs:
            labels = DESIGNS[design](of, n, dice)
            sums = debiased.corrected(of.known, labels)
            few_tasks = len(np.unique(labels.task)) < debiased.FEWEST_LABELLED_TASKS
            if (
                len(labels.label) < debiased.FEWEST_LABELS
                or few_tasks
                or debiased.outweighed(sums.effective_labels)
            ):
                refused[design] += 1
                continue
            alone = debiased.corrected(of.known, labels, uses_judge=False)
            for name, each in (
                (design, debiased.estimate(sums)),
                (f"alone, {design}", debiased.estimate(alone)),
            ):
                estimates.setdefault(name, []).append((each.mean, each.low, each.high))
    return {
        name: _outcome(np.array(rows), world.truth, replications)
        for name, rows in estimates.items()
    }


def _outcome(rows: Floats, truth: float, replications: int) -> Outcome:
    mean, low, high = rows.T
    holds = (low <= truth) & (truth <= high)
    width = high - low
    return Outcome(
        float(holds.mean()),
        len(rows) / replications,
        float(width.mean()),
        float(mean.mean() - truth),
    )


def differences(n: int, replications: int, seed: int = 2) -> tuple[Outcome, Outcome]:
    """The difference of two equally good models if the judge is lenient with one: debiased, and
    from labels alone.
    """
    fair = WORLDS["biased by category"]
    lenient = WORLDS["lenient with this model"]
    estimates: list[list[tuple[float, float, float]]] = [[], []]
    everywhere = np.arange(N_TASKS)
    for number in range(replications):
        dice = np.random.default_rng([seed, number, n])
        models = [replication(world, dice) for world in (fair, lenient)]
        labelled = [one_sheet(of, n // 2, dice) for of in models]
        for position, uses_judge in enumerate((True, False)):
            first, second = (
                debiased.corrected(of.known, labels, uses_judge=uses_judge)
                for of, labels in zip(models, labelled, strict=True)
            )
            estimate = debiased.estimated_difference(first, second, (everywhere, everywhere))
            estimates[position].append((estimate.mean, estimate.low, estimate.high))
    with_judge, alone = (_outcome(np.array(rows), 0.0, replications) for rows in estimates)
    return with_judge, alone


def _cell(outcome: Outcome | None, beside: float) -> str:
    if outcome is None:
        return "no figure"
    given = "" if outcome.given > 0.995 else f", {outcome.given:.0%} given"
    return f"{outcome.coverage:.1%} ({outcome.width / beside:.2f}{given})"


def rows(replications: int) -> Iterator[Sequence[object]]:
    """The table, line by line."""
    for name, world in WORLDS.items():
        for share in SHARES:
            n = round(share * 18.5 * N_TASKS)
            by_design = outcomes(world, n, replications)
            beside = by_design["alone, chosen"].width
            yield (
                name,
                f"{share:.0%}",
                n,
                *(_cell(by_design.get(column), beside) for column in COLUMNS),
            )
    for share in SHARES[1:]:
        n = round(share * 2 * 18.5 * N_TASKS)
        with_judge, alone = differences(n, replications)
        cells = "–", "–", _cell(alone, alone.width), _cell(with_judge, alone.width), "–"
        yield "difference of two models", f"{share:.0%}", n, *cells


def main() -> None:
    """Print coverage and relative width of every world and design."""
    header = ("judge", "labelled", "labels", *COLUMNS)
    markdown(header, rows(arguments(__doc__, replications=1_000).replications))


if __name__ == "__main__":
    main()
