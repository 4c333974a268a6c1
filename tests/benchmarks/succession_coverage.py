"""Coverage of the intervals of a succession: effects of another judge, and differences of effects.

Rubrics are made up, with the verdicts of two judges on the responses of several models. The new
judge decides a sample of criteria, drawn as `prbench succeed` draws it; estimates are the project's
own code. The tasks stay the same, so the true effect is the mean over all criteria.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.rules.statistics import debiased
from tasks.rules.statistics.effects import Effects, SampledModel, effects_on
from tasks.rules.statistics.intervals import LEVEL, Floats, Ints
from tasks.rules.statistics.sampling import proportional_sample
from tasks.succession.estimate import level_of_look
from tests.benchmarks.debiased_coverage import CATEGORIES, N_TASKS, Rubrics, rubrics
from tests.benchmarks.figures import parse_arguments, print_markdown

N_MODELS = 6
SAMPLE_SIZES = (150, 300, 600)
MOST_LOOKS = 3


class World(NamedTuple):
    """How the new judge differs: the chance of a flip down and up, of shape (n_models, CATEGORIES)."""

    down: Floats
    up: Floats


def _worlds() -> dict[str, World]:
    ones = np.ones((N_MODELS, CATEGORIES))
    by_category = np.array([0.02, 0.1, 0.3, 0.05, 0.0]) * ones
    by_model = np.linspace(0.0, 0.25, N_MODELS)[:, None] * ones
    return {
        "no difference but noise": World(0.05 * ones, 0.05 * ones),
        "stricter by category": World(by_category, 0.02 * ones),
        "stricter by model and category": World(
            0.5 * (by_category + by_model), 0.03 * ones
        ),
        "rare flips, all one way": World(0.01 * ones, 0.0 * ones),
    }


class Population(NamedTuple):
    """Criteria with the verdicts of both judges, of shape (n_models, n_criteria)."""

    criteria: Rubrics
    old: Floats
    new: Floats

    def scores(self, verdicts: Floats) -> Floats:
        """The scores of tasks, of shape (n_models, n_tasks)."""
        return np.array([self.criteria.task_values(values) for values in verdicts])


def population(dice: np.random.Generator, world: World) -> Population:
    """Return the verdicts of both judges; models differ in how often they meet criteria."""
    criteria = rubrics(dice, N_TASKS)
    quality = np.linspace(0.8, 1.2, N_MODELS)[:, None]
    chances = np.minimum(criteria.chance * quality, 1.0)
    old = (dice.random(chances.shape) < chances).astype(float)
    down = world.down[:, criteria.category]
    up = world.up[:, criteria.category]
    flips = dice.random(old.shape) < np.where(old == 1.0, down, up)
    return Population(criteria, old, np.abs(old - flips))


def estimated(judged: Population, n_criteria: int, seed: int) -> Effects:
    """Return the effects that a sample of criteria gives."""
    criteria = judged.criteria
    signs = np.where(
        criteria.contribution > 0,
        "positive",
        "negative",
    )
    sampled = proportional_sample(
        keys=[str(index) for index in range(len(criteria.task))],
        strata=[
            f"{sign} {kind}"
            for sign, kind in zip(signs, criteria.category, strict=True)
        ],
        sizes=np.abs(criteria.contribution),
        n_wanted=n_criteria,
        seed=seed,
    )
    positions = np.array([unit.position for unit in sampled])
    factor = np.array([1.0 / unit.probability for unit in sampled])
    old_scores = judged.scores(judged.old)
    models = []
    for model in range(N_MODELS):
        models.append(
            _sampled_model(judged, model, positions, factor, old_scores[model]),
        )
    return effects_on(models, len(positions))


def _sampled_model(
    judged: Population,
    model: int,
    positions: Ints,
    factor: Floats,
    old_scores: Floats,
) -> SampledModel:
    criteria = judged.criteria
    positive = np.maximum(criteria.contribution, 0.0)
    tasks = debiased.KnownTasks(
        offset=np.zeros(N_TASKS),
        positive=np.bincount(criteria.task, positive, N_TASKS),
        negative=np.bincount(
            criteria.task, criteria.contribution - positive, N_TASKS
        ),
        judged=old_scores,
    )
    labels = debiased.Labels(
        task=criteria.task[positions],
        contribution=criteria.contribution[positions],
        label=judged.new[model, positions],
        judge=judged.old[model, positions],
        factor=factor,
    )
    return SampledModel(
        corrected=debiased.corrected(tasks, labels),
        first_mean=float(old_scores.mean()),
        criterion=np.arange(len(positions)),
        is_complete=False,
        undecided=0.0,
    )


def true_effects(judged: Population) -> Floats:
    """The effect on each model if the new judge decided everything."""
    return (judged.scores(judged.new) - judged.scores(judged.old)).mean(axis=1)


def covers(
    effects: Effects, truth: Floats, level: float = LEVEL
) -> tuple[float, bool]:
    """Return the share of models whose effect is covered, and whether all differences are."""
    covered = np.abs(effects.means - truth) <= effects.half_widths(level)
    differences = effects.means[:, None] - effects.means[None, :]
    true_differences = truth[:, None] - truth[None, :]
    errors = np.abs(differences - true_differences)
    all_covered = bool((errors <= effects.pair_half_widths(level) + 1e-12).all())
    return float(covered.mean()), all_covered


def at_given_width(
    judged: Population, seed: int, width: float
) -> tuple[Effects, float]:
    """Return the effects and the level at the look that ends a growing sample."""
    n_criteria = SAMPLE_SIZES[0]
    for look in range(1, MOST_LOOKS + 1):
        effects = estimated(
            judged,
            n_criteria,
            seed,
        )
        level = level_of_look(look)
        if 2.0 * effects.half_widths(level).max() <= width:
            break
        n_criteria *= 2
    return effects, level


Row = tuple[str, str, str, str, str]


def world_rows(name: str, world: World, replications: int) -> list[Row]:
    """Return the coverage for each size of the sample, and for a sample that grows."""
    effects_covered = np.zeros((replications, len(SAMPLE_SIZES) + 1))
    pairs_covered = np.zeros_like(effects_covered)
    widths = np.zeros_like(effects_covered)
    for replication in range(replications):
        dice = np.random.default_rng(replication)
        judged = population(dice, world)
        truth = true_effects(judged)
        designs = [(estimated(judged, n, replication), LEVEL) for n in SAMPLE_SIZES]
        designs.append(
            at_given_width(judged, replication, width=0.05),
        )
        for index, (effects, level) in enumerate(designs):
            share, all_covered = covers(effects, truth, level)
            effects_covered[replication, index] = share
            pairs_covered[replication, index] = all_covered
            widths[replication, index] = 2.0 * effects.half_widths(level).mean()
    labels = [*map(str, SAMPLE_SIZES), "until 0.05 wide"]
    return [
        (
            name,
            label,
            f"{effects_covered[:, index].mean():.1%}",
            f"{pairs_covered[:, index].mean():.1%}",
            f"{widths[:, index].mean():.3f}",
        )
        for index, label in enumerate(labels)
    ]


def main() -> None:
    """Print the table."""
    arguments = parse_arguments(__doc__, replications=500)
    rows: list[Sequence[str]] = []
    for name, world in _worlds().items():
        rows += world_rows(name, world, arguments.replications)
    print_markdown(
        (
            "world",
            "sampled criteria",
            "effect",
            "all differences",
            "width of an effect",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
