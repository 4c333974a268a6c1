"""Coverage of the held-out interval of a picked cascade, and the share of picks that keep their
bound.

python -m tests.benchmarks.cascade_coverage --replications 400 --resamples 500
"""

from collections.abc import Sequence

import numpy as np

from tasks.rules.cascades.evaluation import Bound, for_choosing
from tasks.rules.cascades.rules import candidates
from tests.benchmarks.figures import arguments, markdown
from tests.tasks.rules.cascades.worlds import Outcome, noise, of_picked

_WORLDS = [(60, 0.12, 0.9), (120, 0.12, 0.9), (300, 0.12, 0.9), (120, 0.05, 0.95)]


def _outcome(seed: int, n_tasks: int, errs: float, least: float, resamples: int) -> Outcome:
    paired = noise(seed, n_tasks, errs=errs)
    tried = candidates(paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=True)
    return of_picked(paired, tried, Bound("agreement", least), resamples, errs)


def main() -> None:
    """Print a table in Markdown."""
    given = arguments(__doc__, replications=400, resamples=500)
    header = (
        "cheap judge errs",
        "bound",
        "interval covers the truth",
        "truth keeps the bound",
        "rules picked",
    )
    markdown(
        ("tasks", *header), (_row(*world, given.replications, given.resamples) for world in _WORLDS)
    )


def _row(
    n_tasks: int, errs: float, least: float, replications: int, resamples: int
) -> Sequence[object]:
    results = [_outcome(seed, n_tasks, errs, least, resamples) for seed in range(replications)]
    covered, within = (
        100 * np.mean([getattr(each, name) for each in results])
        for name in ("is_covered", "is_within")
    )
    rules = len({each.rule for each in results})
    return n_tasks, f"{errs:.0%}", least, f"{covered:.1f} %", f"{within:.1f} %", rules


if __name__ == "__main__":
    main()
