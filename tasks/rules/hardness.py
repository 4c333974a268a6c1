"""The selection of the hard subset: tasks of a field on which a panel scores lowest.

Source: the paper, section 2. The module also measures how a selection depends on the panel: by
resampled panels, and by panels without one model.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tasks.rules.errors import PipelineError
from tasks.rules.statistics.intervals import RESAMPLES, SEED, Floats


class HardSubsetError(PipelineError):
    """The subset cannot be selected; the message says why."""


def wanted_size(n_tasks: int, share: float | Mapping[str, int], field: str) -> int:
    """Return the number of tasks to select in a field.

    `share` is a share of the admitted tasks (0.5 of 601 are 300), or a number for each field.
    """
    if isinstance(share, Mapping):
        if field not in share:
            raise HardSubsetError("hard_subset.share has no number for this field")
        return share[field]
    # A product may be just below a whole number: 100 * 0.29 is 28.999999999999996.
    return math.floor(n_tasks * share + 1e-9)


def select_hardest(scores: Mapping[str, Sequence[float]], size: int) -> dict[str, float]:
    """Return the `size` tasks with the lowest mean score, with these means, hardest first.

    Ties are by task id. `scores` has, for each task that is complete for the whole panel, a score
    of each model (already the mean over its trials). The sum over models is exact (`math.fsum`), so
    that their order never decides a tie.

    Raises:
        HardSubsetError: fewer tasks are complete than the size, or the size is below 1.
    """
    if not 1 <= size <= len(scores):
        raise HardSubsetError(
            f"{size} tasks are wanted, and {len(scores)} are complete for every model"
        )
    means = {task: math.fsum(values) / len(values) for task, values in scores.items()}
    # The scores themselves are means over trials, so equal ones may differ in the last digits.
    hardest = sorted(means, key=lambda task: (round(means[task], 12), task))[:size]
    return {task: means[task] for task in hardest}


BORDER = (0.05, 0.95)
"""A task whose inclusion probability is in this range (ends included) is on the border."""
_SAMPLED_AT_A_TIME = 1_000
"""Number of resampled panels in one matrix product, which bounds its memory."""


def inclusion_probabilities(
    values: Floats,
    n_trials: Sequence[int],
    size: int,
    *,
    resamples: int = RESAMPLES,
) -> Floats:
    """Return the share of resampled panels with each task among the `size` hardest.

    A resampled panel has as many models as the real one, drawn with replacement; each drawn model
    has its real number of trials, drawn with replacement. A trial is one repetition of the whole
    evaluation, so all tasks share the draw. A task's score is the mean over the drawn models of the
    mean over their drawn trials.

    Ties go by the tasks' order, as in `select_hardest`: every task's scores are first raised by
    1e-12 for each position in the order, which makes all means different. This is far more than
    rounding, and far less than scores of rubrics with whole weights up to 10 can differ by.

    A panel of one model with one trial cannot be resampled: the probabilities are 0 and 1, which
    means that they are unknown, not that the selection is certain. Few models give few different
    panels (ten for three models).

    Args:
        values: shape (n_tasks, sum of n_trials), the tasks in the order of their ids, the trials
            model by model.
        n_trials: the number of trials of each model.
        size: number of tasks in a selection, from 1 to n_tasks.

    Returns:
        Shape (n_tasks,), from 0 to 1; they sum to `size`.
    """
    # The means of all tasks are one product with a panel's weights.
    columns = (values + 1e-12 * np.arange(len(values))[:, None]).T
    generator = np.random.default_rng(SEED)
    n_selections = np.zeros(len(values), dtype=np.int64)
    for start in range(0, resamples, _SAMPLED_AT_A_TIME):
        panels = _panels(generator, n_trials, min(_SAMPLED_AT_A_TIME, resamples - start))
        hardest = np.argpartition(panels @ columns, size - 1, axis=1)[:, :size]
        n_selections += np.bincount(hardest.ravel(), minlength=len(values))
    return n_selections / resamples


def _panels(generator: np.random.Generator, n_trials: Sequence[int], n_panels: int) -> Floats:
    """Return weights of models' trials in resampled panels; rows sum to 1.

    A model with n trials that is drawn k times has k * n draws of its trials.

    Returns:
        Shape (n_panels, sum of n_trials).
    """
    n_models = len(n_trials)
    n_sampled = generator.multinomial(n_models, np.full(n_models, 1.0 / n_models), size=n_panels)
    weights = []
    for model, n in enumerate(n_trials):
        n_draws = generator.multinomial(n_sampled[:, model] * n, np.full(n, 1.0 / n))
        weights.append(n_draws / (n * n_models))
    return np.concatenate(weights, axis=1)


def leave_one_out(scores: Mapping[str, Sequence[float]], size: int) -> list[frozenset[str]]:
    """Return the tasks that the panel would have selected without each of its models.

    Args:
        scores: for each task a score of each model, as for `select_hardest`; at least two models.
        size: number of tasks in a selection.

    Returns:
        A set of `size` task ids for each model, in the order of models.
    """
    n_models = len(next(iter(scores.values())))
    selections = []
    for model in range(n_models):
        panel = {task: [*row[:model], *row[model + 1 :]] for task, row in scores.items()}
        selections.append(frozenset(select_hardest(panel, size)))
    return selections
