"""Drift: false alarms of a steady judge in a year, and nights until a change of a judge is found.

A judge decides the same 200 verdicts of 50 tasks every night, and is compared with its first night,
which is as noisy as any other. Errors of a task go together: in each night, the log-odds of its
verdicts move together. From the 61st night on the judge decides some verdicts the other way, so
that its agreement with its first verdicts falls by 2, 5 or 10 points on average. People labelled
every second verdict as the judge of the first nights decides most often, so the first decisions are
the better ones.

Each cell has the share of changes found, the median of the nights that it took, and the shares of
those found of which the alert says that the first, and that the new decisions are better.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from tasks.rules.statistics.control import joint_limits, limits, people_clause
from tests.benchmarks.figures import parse_arguments, print_markdown

Night = dict[str, Any]
N_NIGHTS = 365
N_TASKS = 50
N_VERDICTS = 4
"""Verdicts of each task."""
CHANGE_NIGHT = 61
POINTS = (0.02, 0.05, 0.10)
_SETTLED = 5.0
"""Log-odds of verdicts that hardly change."""


class World(NamedTuple):
    """A judge: the share of its verdicts that are a toss-up, and the standard deviation of the
    log-odds of a task from night to night.
    """

    open_share: float
    task_noise: float


WORLDS = {
    "steady": World(open_share=0.05, task_noise=0.0),
    "usual": World(open_share=0.15, task_noise=0.5),
    "noisy": World(open_share=0.4, task_noise=0.5),
    "tasks go together": World(open_share=0.15, task_noise=2.5),
}


def year(world: World, points: float, dice: np.random.Generator) -> list[Night]:
    """Return the nights of a year, with limits and agreement with people."""
    shape = (N_TASKS, N_VERDICTS)
    is_open = dice.random(shape) < world.open_share
    settled = _SETTLED * dice.choice([-1.0, 1.0], shape)
    log_odds = np.where(
        is_open,
        dice.normal(0.0, 1.0, shape),
        settled,
    )
    noise = dice.normal(
        0.0,
        world.task_noise,
        (N_NIGHTS + 1, N_TASKS, 1),
    )
    is_met = dice.random((N_NIGHTS + 1, *shape)) < expit(log_odds + noise)
    usual_agreement = (is_met[1:] == is_met[0]).mean()
    n_reversed = round(points * is_open.size / (2 * usual_agreement - 1))
    is_reversed = dice.permutation(is_open.size).reshape(shape) < n_reversed
    is_met[CHANGE_NIGHT:] ^= is_reversed
    return nights_of(
        is_met,
        is_met == (log_odds > 0),
    )


def nights_of(is_met: np.ndarray, is_as_labelled: np.ndarray) -> list[Night]:
    """Return the nights of decisions, shape (n_nights + 1, n_tasks, n_verdicts)."""
    differing = (is_met[1:] != is_met[0]).sum(axis=2).astype(float)
    labelled = is_as_labelled[:, :, ::2]
    people_agreement = labelled.mean(
        axis=(1, 2),
    )
    n_decided = is_met[0].size
    nights = []
    for number, n_differing in enumerate(differing.sum(axis=1), start=1):
        night = {
            "night": number,
            "n_decided": n_decided,
            "n_agreeing": n_decided - int(n_differing),
            "min_agreement": None,
            "agreement": 1 - n_differing / n_decided,
            "n_labelled": labelled[0].size,
            "first_people_agreement": people_agreement[0],
            "people_agreement": people_agreement[number],
            "labels_represent": "these items only",
        }
        nights.append(night)
    for night, joint_limit in zip(
        nights, joint_limits(nights, differing), strict=True
    ):
        night["joint_limit"] = joint_limit
    return limits(nights)


def alarms_of(nights: Sequence[Night], bound: str) -> list[Night]:
    """Return the nights below a bound."""
    return [
        night for night in nights if bound in (night["cause"] or "").split(" and ")
    ]


def cell_text(years: Sequence[Sequence[Night]], bound: str) -> str:
    """Return a cell of the table."""
    delays = []
    clauses = []
    for nights in years:
        alarms = alarms_of(
            nights[CHANGE_NIGHT - 1 :],
            bound,
        )
        if alarms:
            delays.append(alarms[0]["night"] - CHANGE_NIGHT + 1)
            clauses.append(people_clause(alarms[0]))
        else:
            delays.append(np.inf)
    shares = [f"{len(clauses) / len(years):.0%}", f"{np.median(delays):.0f}"]
    for side in ("first decisions were better", "new decisions are better"):
        n_named = sum(side in clause for clause in clauses)
        shares.append(f"{n_named / max(1, len(clauses)):.0%}")
    return ", ".join(shares)


def rows(replications: int) -> Iterator[Sequence[str]]:
    """Yield the lines of the table."""
    for name, world in WORLDS.items():
        dice = np.random.default_rng(1)
        years_by_points = {}
        for points in (0.0, *POINTS):
            years = [year(world, points, dice) for _ in range(replications)]
            years_by_points[points] = years
        for bound in ("limit", "joint limit"):
            alarms = [
                bool(alarms_of(nights, bound)) for nights in years_by_points[0.0]
            ]
            cells = [cell_text(years_by_points[points], bound) for points in POINTS]
            yield name, bound, f"{np.mean(alarms):.1%}", *cells


def main():
    """Print the false alarms and the changes found, by world and bound."""
    options = parse_arguments(
        __doc__,
        replications=200,
    )
    headings = [f"{100 * points:.0f} points" for points in POINTS]
    header = ["judge", "bound", "false alarms in a year", *headings]
    print_markdown(
        header,
        rows(options.replications),
    )


if __name__ == "__main__":
    main()
