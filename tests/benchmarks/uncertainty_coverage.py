"""How often intervals of variance components contain the planted variances, and their mean.

A score is a task's effect, a response's and a repetition's; `skewed` effects are exponential, so
that few tasks are far from the others. A tenth of the scores is missing. Judges are normal effects
crossed with tasks.

python -m tests.benchmarks.uncertainty_coverage --replications 1000
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tasks.rules.statistics.uncertainty import Source, judge_choice, sources
from tests.benchmarks.figures import parse_arguments, print_markdown

SPREADS = {
    "tasks": 0.2,
    "trials": 0.1,
    "judge trials": 0.05,
}
"""Source -> standard deviation of its effect."""
WORLDS = {
    "normal": np.random.Generator.normal,
    "skewed": np.random.Generator.exponential,
}
"""World -> effects with variance 1."""
TASKS = (20, 50, 100, 300)
KEPT = 0.9
"""The share of scores that are not missing."""
JUDGES = (
    (30, 5),
    (100, 5),
    (100, 10),
)
"""Number of tasks and of judges."""
JUDGE_SPREAD = 0.03
INTERACTION = 0.1


def sources_of(seed: int, n_tasks: int, world: str) -> dict[str, Source]:
    """The sources of scores with three responses to each task, each judged twice."""
    dice = np.random.default_rng(seed)
    tasks, trials, _ = np.indices((n_tasks, 3, 2))
    values = 0.0
    shapes = (
        (n_tasks, 1, 1),
        (n_tasks, 3, 1),
        (n_tasks, 3, 2),
    )
    for spread, shape in zip(SPREADS.values(), shapes, strict=True):
        values = values + spread * WORLDS[world](dice, size=shape)
    is_kept = dice.random(tasks.shape) < KEPT
    responses = 3 * tasks + trials
    return sources(
        tasks[is_kept],
        responses[is_kept],
        values[is_kept],
    )


def choice_of(seed: int, n_tasks: int, n_judges: int) -> Source:
    """The choice of judge as a source."""
    dice = np.random.default_rng(seed)
    means = dice.normal(
        0,
        INTERACTION,
        (n_tasks, n_judges),
    )
    means += dice.normal(0, SPREADS["tasks"], (n_tasks, 1))
    return judge_choice(
        means + dice.normal(0, JUDGE_SPREAD, n_judges),
    )


def cells(variance: float, results: Sequence[Source]) -> tuple[str, str, str]:
    """Return the truth, the mean of the estimates, and the share of intervals that contain the
    truth.
    """
    mean = np.mean([result.variance for result in results])
    is_covered = [result.ci_low <= variance <= result.ci_high for result in results]
    return f"{variance:.4f}", f"{mean:.4f}", f"{np.mean(is_covered):.1%}"


def rows(replications: int) -> Iterator[Sequence[object]]:
    """Yield the lines of the table."""
    for world, n_tasks in itertools.product(WORLDS, TASKS):
        results = []
        for seed in range(replications):
            results.append(
                sources_of(seed, n_tasks, world),
            )
        for name, spread in SPREADS.items():
            source_results = [result[name] for result in results]
            yield world, n_tasks, "", name, *cells(spread**2, source_results)
    for n_tasks, n_judges in JUDGES:
        results = []
        for seed in range(replications):
            results.append(
                choice_of(seed, n_tasks, n_judges),
            )
        yield "normal", n_tasks, n_judges, "judges", *cells(JUDGE_SPREAD**2, results)


def main():
    """Print a table in Markdown."""
    replications = parse_arguments(__doc__, replications=1000).replications
    header = (
        "effects",
        "tasks",
        "judges",
        "variance of",
        "truth",
        "mean estimate",
        "interval covers",
    )
    print_markdown(
        header,
        rows(replications),
    )


if __name__ == "__main__":
    main()
