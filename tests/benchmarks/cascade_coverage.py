"""How often the held-out interval of a picked cascade covers the truth, and how often the bound that it was picked for.

python -m tests.benchmarks.cascade_coverage --replications 400 --resamples 500
"""

import argparse
from functools import partial

import numpy as np

from tasks.rules.cascades.evaluation import Bound, for_choosing
from tasks.rules.cascades.rules import candidates
from tests.tasks.rules.cascades.worlds import Outcome, noise, of_picked

_WORLDS = [(60, 0.12, 0.9), (120, 0.12, 0.9), (300, 0.12, 0.9), (120, 0.05, 0.95)]


def _outcome(seed: int, n_tasks: int, errs: float, least: float, resamples: int) -> Outcome:
    paired = noise(seed, n_tasks, errs=errs)
    tried = candidates(paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=True)
    return of_picked(paired, tried, Bound("agreement", least), resamples, errs)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=500)
    given = parser.parse_args()
    print("| tasks | cheap judge errs | bound | interval covers the truth | truth keeps the bound | rules picked |")
    print("|---|---|---|---|---|---|")
    for n_tasks, errs, least in _WORLDS:
        made = partial(_outcome, n_tasks=n_tasks, errs=errs, least=least, resamples=given.resamples)
        found = [made(seed) for seed in range(given.replications)]
        covered, within = (
            100 * np.mean([getattr(each, name) for each in found]) for name in ("is_covered", "is_within")
        )
        n_rules = len({each.rule for each in found})
        print(f"| {n_tasks} | {errs:.0%} | {least} | {covered:.1f} % | {within:.1f} % | {n_rules} |", flush=True)


if __name__ == "__main__":
    main()
