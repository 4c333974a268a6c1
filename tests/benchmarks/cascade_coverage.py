"""Coverage of the held-out interval of a picked cascade, and the share of picks that keep their
bound.

python -m tests.benchmarks.cascade_coverage --replications 400 --resamples 500
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.rules.cascades.evaluation import Bound, for_choosing
from tasks.rules.cascades.rules import candidates
from tests.benchmarks.figures import parse_arguments, print_markdown
from tests.tasks.rules.cascades.worlds import Outcome, noise, picked_outcome

_WORLDS = [(60, 0.12, 0.9), (120, 0.12, 0.9), (300, 0.12, 0.9), (120, 0.05, 0.95)]


def outcome_of_pick(
    seed: int,
    n_tasks: int,
    error_rate: float,
    bound: float,
    resamples: int,
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
