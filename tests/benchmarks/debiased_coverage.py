"""Coverage and width of the 95 % interval of a debiased score.

Rubrics are made up, with people's decisions and those of a judge that errs in one of several ways;
a part of the verdicts is labelled, chosen uniformly or as `prbench export labelling --for` chooses.
Estimates and probabilities are the project's own code; the true score is the mean of the
probabilities that the decisions are drawn with.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics import debiased
from tasks.rules.statistics.debiased import DebiasedEstimate
from tasks.rules.statistics.sampling import (
    expected_errors,
    group_errors,
    sampling_probabilities,
    sampling_sizes,
)
from tests.benchmarks.figures import parse_arguments, print_markdown

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
    dice: np.random.Generator,
    n_tasks: int = N_TASKS,
    *,
    is_heavy: bool = False,
) -> Rubrics:
    """Return tasks with 7 to 30 criteria, 7 % of them negative, whose decisions are correlated
    within a task.
    """
    n_criteria = dice.integers(7, 31, n_tasks)
    task = np.repeat(np.arange(n_tasks), n_criteria)
    n = len(task)
    if is_heavy:
        weight = np.minimum(np.ceil(2 * dice.pareto(1.2, n) + 1), 200)
    else:
        weight = dice.integers(1, 11, n)
    is_negative = dice.random(n) < 0.07
    first_criteria = np.cumsum(n_criteria) - n_criteria
    is_negative[first_criteria] = False  # every task has a positive criterion
    length = dice.normal(size=n_tasks)
    ease = dice.normal(size=n_tasks)
    log_odds = 0.3 + ease[task] + 0.3 * length[task] + dice.normal(size=n)
    chance = 1 / (1 + np.exp(-log_odds))
    positive = np.bincount(task, np.where(is_negative, 0, weight), n_tasks)
    return Rubrics(
        task=task,
        contribution=np.where(is_negative, -1, 1) * weight / positive[task],
        category=dice.integers(0, CATEGORIES, n),
        chance=np.where(is_negative, 0.3 * chance, chance),
        length=length[task],
    )


def _by_category(sample: Rubrics, dice: np.random.Generator) -> tuple[Floats, Floats]:
    up = np.array([0.05, 0.3, 0.1, 0.4, 0.02])
    down = np.array([0.2, 0.05, 0.1, 0.02, 0.3])
    return up[sample.category], down[sample.category]


def _by_length(sample: Rubrics, dice: np.random.Generator) -> tuple[Floats, Floats]:
    longness = 1 / (1 + np.exp(-2 * sample.length))
    return 0.5 * longness, 0.4 * (1 - longness)


def _within_tasks(
    sample: Rubrics, dice: np.random.Generator
) -> tuple[Floats, Floats]:
    is_bad = (dice.random(sample.task.max() + 1) < 0.25)[sample.task]
    return np.where(is_bad, 0.8, 0.03), np.where(is_bad, 0.0, 0.05)


def _constant(up: float, down: float) -> Errors:
    return lambda sample, dice: (
        np.full(len(sample.task), up),
        np.full(len(sample.task), down),
    )


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
        task = self.rubrics.task
        contribution = self.rubrics.contribution
        n_tasks = int(task.max()) + 1
        return debiased.KnownTasks(
            np.zeros(n_tasks),
            np.bincount(task, np.maximum(contribution, 0)),
            np.bincount(task, np.minimum(contribution, 0)),
            self.rubrics.task_values(self.judge, n_tasks),
        )

    def labels(self, indices: NDArray[np.int64], factors: Floats) -> debiased.Labels:
        """Return the labels of some verdicts."""
        return debiased.Labels(
            self.rubrics.task[indices],
            self.rubrics.contribution[indices],
            self.people[indices],
            self.judge[indices],
            factors,
        )


def replication(world: World, dice: np.random.Generator) -> Replication:
    """A made-up model with its judges; some worlds have a judge whose decisions are pure noise."""
    sample = rubrics(dice, is_heavy=world.is_heavy)
    people = (dice.random(len(sample.task)) < sample.chance).astype(float)
    up, down = world.errors(sample, dice)

    def judged():
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
    return np.sort(
        order[np.diff(np.floor(ends - start), prepend=np.floor(-start)) > 0]
    )


class Sheet(NamedTuple):
    """Verdicts drawn as a sheet draws them, and the probability of every verdict: 1 if it already
    had a label.
    """

    indices: NDArray[np.int64]
    probabilities: Floats


def drawn_sheet(
    model: Replication,
    n: int,
    labelled: NDArray[np.int64],
    dice: np.random.Generator,
) -> Sheet:
    """Draw `n` verdicts that have no label yet."""
    groups = model.rubrics.category
    squared_errors = (model.people - model.judge)[labelled] ** 2
    disagreement = (model.judge - model.second) ** 2
    errors = expected_errors(
        group_errors(groups[labelled], squared_errors, groups),
        disagreement,
        np.ones(len(groups)),
    )
    unlabelled = np.setdiff1d(np.arange(len(groups)), labelled)
    verdict_sizes = sampling_sizes(
        model.rubrics.contribution[unlabelled], errors[unlabelled]
    )
    probabilities = np.ones(len(groups))
    probabilities[unlabelled] = sampling_probabilities(verdict_sizes, n)
    return Sheet(
        unlabelled[systematic(probabilities[unlabelled], dice)], probabilities
    )


def uniform(model: Replication, n: int, dice: np.random.Generator) -> debiased.Labels:
    """Return a simple random sample of labels."""
    n_verdicts = len(model.people)
    indices = np.sort(dice.choice(n_verdicts, n, replace=False))
    return model.labels(indices, np.full(n, n_verdicts / n))


def one_sheet(
    model: Replication, n: int, dice: np.random.Generator
) -> debiased.Labels:
    """Return the labels of one drawn sheet."""
    sheet = drawn_sheet(model, n, np.array([], dtype=np.int64), dice)
    return model.labels(sheet.indices, 1 / sheet.probabilities[sheet.indices])


def two_sheets(
    model: Replication,
    n: int,
    dice: np.random.Generator,
) -> debiased.Labels:
    """Return the labels of two sheets, half of them each; the second is drawn with the errors that
    the first showed.
    """
    n_verdicts = len(model.people)
    n_first = n // 2
    n_second = n - n_first
    first_sheet = drawn_sheet(model, n_first, np.array([], dtype=np.int64), dice)
    second_sheet = drawn_sheet(model, n_second, first_sheet.indices, dice)
    densities = np.array([n_first / n_verdicts, n_second / (n_verdicts - n_first)])
    factors = np.zeros((2, n_verdicts))
    factors[0, first_sheet.indices] = (
        1 / first_sheet.probabilities[first_sheet.indices]
    )
    factors[1, second_sheet.indices] = (
        1 / second_sheet.probabilities[second_sheet.indices]
    )
    factors[1, first_sheet.indices] = 1.0
    factor = densities @ factors / densities.sum()
    indices = np.flatnonzero(factor)
    return model.labels(indices, factor[indices])


DESIGNS = {
    "uniform": uniform,
    "chosen": one_sheet,
    "two sheets": two_sheets,
}


class Outcome(NamedTuple):
    """The result of a design, with a judge or without.

    Attributes:
        coverage: the share of intervals that contain the truth.
        reported: the share of samples with a figure.
        width: the mean width of the intervals.
        bias: the mean error.
    """

    coverage: float
    reported: float
    width: float
    bias: float


def outcome(
    estimates: Sequence[DebiasedEstimate],
    truth: float,
    replications: int,
) -> Outcome:
    mean, low, high = np.array(
        [(estimate.mean, estimate.low, estimate.high) for estimate in estimates]
    ).T
    is_covered = (low <= truth) & (truth <= high)
    return Outcome(
        coverage=float(is_covered.mean()),
        reported=len(estimates) / replications,
        width=float((high - low).mean()),
        bias=float(mean.mean() - truth),
    )


def is_refused(labels: debiased.Labels, effective_labels: float) -> bool:
    """Return whether the labels are too few or too uneven for a figure."""
    return (
        len(labels.label) < debiased.FEWEST_LABELS
        or len(np.unique(labels.task)) < debiased.FEWEST_LABELLED_TASKS
        or debiased.outweighed(effective_labels)
    )


def outcomes(
    world: World,
    n: int,
    replications: int,
    designs: tuple[str, ...] = tuple(DESIGNS),
    seed: int = 1,
) -> dict[str, Outcome]:
    """Return design, or `alone, design` (labels alone), -> its outcome."""
    estimates = defaultdict[str, list[DebiasedEstimate]](list)
    for number in range(replications):
        dice = np.random.default_rng([seed, number, n])
        model = replication(world, dice)
        for design in designs:
            labels = DESIGNS[design](model, n, dice)
            sums = debiased.corrected(model.known, labels)
            if is_refused(labels, sums.effective_labels):
                continue
            sums_alone = debiased.corrected(model.known, labels, uses_judge=False)
            estimates[design].append(debiased.estimate(sums))
            estimates[f"alone, {design}"].append(debiased.estimate(sums_alone))
    return {
        name: outcome(estimates[name], world.truth, replications)
        for name in estimates
    }


def outcome_of_difference(n: int, replications: int, *, uses_judge: bool) -> Outcome:
    """Return the outcome for the difference of two equally good models if the judge is lenient with
    one.
    """
    worlds = (WORLDS["biased by category"], WORLDS["lenient with this model"])
    all_tasks = np.arange(N_TASKS)
    estimates = []
    for number in range(replications):
        dice = np.random.default_rng([2, number, n])
        models = [replication(world, dice) for world in worlds]
        first, second = (
            debiased.corrected(
                model.known,
                one_sheet(model, n // 2, dice),
                uses_judge=uses_judge,
            )
            for model in models
        )
        estimates.append(
            debiased.estimated_difference(first, second, (all_tasks, all_tasks))
        )
    return outcome(estimates, 0.0, replications)


def _cell(design_outcome: Outcome | None, baseline_width: float) -> str:
    if design_outcome is None:
        return "no figure"
    text = f"{design_outcome.width / baseline_width:.2f}"
    if design_outcome.reported <= 0.995:
        text += f", {design_outcome.reported:.0%} given"
    return f"{design_outcome.coverage:.1%} ({text})"


def rows(replications: int) -> Iterator[Sequence[object]]:
    """Yield the lines of the table."""
    n_verdicts = 18.5 * N_TASKS
    for name, world in WORLDS.items():
        for share in SHARES:
            n = round(share * n_verdicts)
            by_design = outcomes(world, n, replications)
            width = by_design["alone, chosen"].width
            cells = [_cell(by_design.get(column), width) for column in COLUMNS]
            yield name, f"{share:.0%}", n, *cells
    for share in SHARES[1:]:
        n = round(share * 2 * n_verdicts)
        alone = outcome_of_difference(n, replications, uses_judge=False)
        with_judge = outcome_of_difference(n, replications, uses_judge=True)
        alone_cell = _cell(alone, alone.width)
        judge_cell = _cell(with_judge, alone.width)
        yield (
            "difference of two models",
            f"{share:.0%}",
            n,
            "–",
            "–",
            alone_cell,
            judge_cell,
            "–",
        )


def main():
    """Print coverage and relative width of every world and design."""
    header = ("judge", "labelled", "labels", *COLUMNS)
    print_markdown(
        header, rows(parse_arguments(__doc__, replications=1_000).replications)
    )


if __name__ == "__main__":
    main()
