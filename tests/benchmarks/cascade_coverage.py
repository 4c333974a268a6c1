"""Coverage of the held-out interval of a picked cascade, and the share of picks that keep their
bound.

python -m tests.benchmarks.cascade_coverage --replications 400 --resamples 500
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tasks.rules.cascades.evaluation import (
    Bound,
    Costs,
    evaluate,
    for_choosing,
    picked,
)
from tasks.rules.cascades.rules import CandidateRule, PairedVerdicts, When, candidates
from tests.benchmarks.figures import parse_arguments, print_markdown
from tests.tasks.rules.cascades.worlds import CATEGORIES, noise

_WORLDS = [(60, 0.12, 0.9), (120, 0.12, 0.9), (300, 0.12, 0.9), (120, 0.05, 0.95)]


class Outcome(NamedTuple):
    """The picked rule, whether its held-out interval covers the true agreement, and whether it
    keeps the bound.
    """

    rule: str
    is_covered: bool
    is_within: bool


def picked_outcome(
    paired: PairedVerdicts,
    candidates: Sequence[CandidateRule],
    bound: Bound,
    resamples: int,
    errs: float,
) -> Outcome:
    """Return the outcome of the picked rule in a world of `noise`, against the truth.

    Without `disagreement`, the share that a rule escalates does not depend on errors. A verdict
    that stays with the cheap judge is wrong with the mean probability `errs`; if repetitions must
    agree, with the probability that both are wrong: the mean square of a beta distribution.
    """
    evaluation = picked(
        evaluate(paired, candidates, Costs(0.001, 0.02), resamples), bound
    )
    when = evaluation.candidate.when
    truth = 1.0
    if when is not None:
        error_rate = errs
        if when.disagreement:
            error_rate = errs * (8 * errs + 1) / 9
        truth = 1.0 - error_rate * (1.0 - _share(when))
    low = evaluation.held_out["agreement_ci_low"]
    high = evaluation.held_out["agreement_ci_high"]
    return Outcome(str(when), low <= truth <= high, truth >= bound.lowest)


def _share(when: When) -> float:
    """The expected share that a rule escalates, whatever the cheap judge decides."""
    stays = 1.0
    if when.weight_above is not None:
        stays *= min(10.0, when.weight_above) / 10
    if when.categories:
        stays *= 1.0 - len(when.categories) / len(CATEGORIES)
    if when.confidence_below is not None:
        stays *= 1.0 - when.confidence_below
    return 1.0 - stays


def outcome_of_pick(
    seed: int, n_tasks: int, error_rate: float, bound: float, resamples: int
) -> Outcome:
    paired = noise(seed, n_tasks, errs=error_rate)
    rules = candidates(
        paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=True
    )
    return picked_outcome(
        paired, rules, Bound("agreement", bound), resamples, error_rate
    )


def rows(replications: int, resamples: int) -> Iterator[Sequence[object]]:
    """Yield the lines of the table."""
    for n_tasks, error_rate, bound in _WORLDS:
        outcomes = [
            outcome_of_pick(seed, n_tasks, error_rate, bound, resamples)
            for seed in range(replications)
        ]
        covered_percent = 100 * np.mean([outcome.is_covered for outcome in outcomes])
        within_percent = 100 * np.mean([outcome.is_within for outcome in outcomes])
        yield (
            n_tasks,
            f"{error_rate:.0%}",
            bound,
            f"{covered_percent:.1f} %",
            f"{within_percent:.1f} %",
            len({outcome.rule for outcome in outcomes}),
        )


def main():
    """Print a table in Markdown."""
    options = parse_arguments(__doc__, replications=400, resamples=500)
    header = (
        "tasks",
        "cheap judge errs",
        "bound",
        "interval covers the truth",
        "truth keeps the bound",
        "rules picked",
    )
    print_markdown(header, rows(options.replications, options.resamples))


if __name__ == "__main__":
    main()
