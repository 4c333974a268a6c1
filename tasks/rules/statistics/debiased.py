"""An estimate of people's mean over tasks, from all verdicts of a judge and labels of a part.

The method is prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic,
"Prediction-Powered Inference", Science 2023), power-tuned (Angelopoulos, Duchi and Zrnic, "PPI++",
2023), for means over tasks of weighted sums of verdicts, with labels of known probability; in
surveys this is a regression estimator (Saerndal, Swensson and Wretman, "Model Assisted Survey
Sampling", 1992, chapter 6). `tasks/rules/evidence.md` shows the coverage of its intervals.

A task's value is `offset + sum of contribution * value` over its verdicts. People's label of a
verdict is predicted by `constant of its sign + power * judge`. A task's corrected value is that
prediction for all its verdicts, plus `factor * contribution * (label - prediction)` for those with
a label; the factor is 1 / probability of being labelled, and 0 without a label, so its mean over
all verdicts is 1. The mean of corrected values is therefore unbiased for any judge, and a better
prediction gives a narrower interval.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.rules.statistics import intervals
from tasks.rules.statistics.intervals import Floats, Ints

METHOD = "debiased-2"
"""The name of the method, stored with estimates; increase the number when the method changes."""
FEWEST_LABELS = 30
"""Smallest number of labelled verdicts for a figure."""
FEWEST_LABELLED_TASKS = 15
"""Smallest number of tasks with labels for a figure."""
FEWEST_EFFECTIVE = 12
"""Smallest equivalent number of equally important labels for a figure."""
_FEWEST_OF_SIGN = 10
"""Smallest number of labels of weights of one sign for a constant of their own."""
_RANK = 1e-9
"""Share of the largest singular value below which one is only a rounding error."""
_RESAMPLES = 2_000
"""Number of resamples, fewer than for a judge's own interval: they only show the skewness of the
tasks' values.
"""


@dataclass(frozen=True)
class KnownTasks:
    """The known values of each task without labels, with an entry for each task.

    Attributes:
        offset: the value without any verdict met.
        positive: the sum of the contributions of its verdicts on criteria with a positive weight.
        negative: the same for a negative weight.
        judged: the task's value by the judge.
    """

    offset: Floats
    positive: Floats
    negative: Floats
    judged: Floats


@dataclass(frozen=True)
class Labels:
    """The labelled verdicts, with an entry for each verdict.

    Attributes:
        task: its task's index.
        contribution: its contribution to the task's value if it is met.
        label: the mean of people's labels.
        judge: the judge's verdict.
        factor: number of verdicts that it represents, on average 1 over all verdicts.
    """

    task: Ints
    contribution: Floats
    label: Floats
    judge: Floats
    factor: Floats


@dataclass(frozen=True)
class Corrected:
    """Tasks' values corrected by labels.

    Attributes:
        values: a value for each task; their mean is the estimate.
        spread: the same with residuals as if each label had not been used for the prediction, for
            standard errors.
        sampling_errors: what the sampling of each label adds to the error of the sum of values;
            their squares sum to its variance on the same tasks.
        extra_variance: contribution of rare errors to the variance of the sum of values.
        effective_labels: the equivalent number of equally important labels.
        degrees: degrees of freedom of the labels.
        power: weight of the judge's verdict, 0 to 1.
    """

    values: Floats
    spread: Floats
    sampling_errors: Floats
    extra_variance: float
    effective_labels: float
    degrees: float
    power: float


@dataclass(frozen=True)
class DebiasedEstimate:
    """A mean with its 95 % interval, and its standard error."""

    mean: float
    low: float
    high: float
    error: float


def corrected(tasks: KnownTasks, labels: Labels, *, uses_judge: bool = True) -> Corrected:
    """Return each task's value corrected by labels.

    Constants and power (from 0 to 1) minimise the estimated variance of the mean.

    Args:
        tasks: all tasks.
        labels: at least one.
        uses_judge: false for values from labels alone.
    """
    signs = _signs(labels.contribution)  # (n_labels, 1 or 2)
    importance = _importance(labels.contribution, labels.factor)
    constants, power = _prediction(signs, labels, importance, uses_judge=uses_judge)
    residual = labels.label - signs @ constants - power * labels.judge
    design = signs
    if power > 0.0:
        design = np.column_stack([signs, labels.judge])
    unused_residual = residual / np.sqrt(1.0 - _leverages(design, importance))
    judged = power * (tasks.judged - tasks.offset)
    # A single constant is that of both signs.
    predicted = (
        tasks.offset + constants[0] * tasks.positive + constants[-1] * tasks.negative + judged
    )
    # The standard deviation that the sampling of each label adds for a residual of 1, with the
    # sign of the contribution.
    sampling_scale = labels.contribution * np.sqrt(labels.factor * (labels.factor - 1.0))
    task_importance = np.bincount(labels.task, importance).astype(float)
    return Corrected(
        values=predicted + _corrections(labels, residual, len(predicted)),
        spread=predicted + _corrections(labels, unused_residual, len(predicted)),
        sampling_errors=sampling_scale * unused_residual,
        extra_variance=_extra_variance(unused_residual, importance),
        effective_labels=_effective(importance),
        degrees=max(1.0, _effective(task_importance) - design.shape[1]),
        power=power,
    )


def _corrections(labels: Labels, residual: Floats, n_tasks: int) -> Floats:
    """Return what the residuals of its labels add to each task's value."""
    weighted = labels.factor * labels.contribution * residual
    return np.bincount(labels.task, weighted, n_tasks).astype(float)


def too_few_labels(
    *,
    n_tasks: int,
    n_tasks_uncovered: int,
    n_labels: int,
    n_tasks_labelled: int,
) -> str | None:
    """Return the reason why the numbers of labels and tasks give no figure; None if they suffice.

    Args:
        n_tasks: tasks of the figure.
        n_tasks_uncovered: tasks among them with a response that no sheet with labels covers.
        n_labels: labelled verdicts of the figure.
        n_tasks_labelled: tasks with such a verdict.
    """
    if n_tasks_uncovered:
        return f"no sheet covers {n_tasks_uncovered} of its {n_tasks} tasks"
    if n_labels < FEWEST_LABELS:
        return f"too few labels: {n_labels}, not {FEWEST_LABELS}"
    if n_tasks_labelled < FEWEST_LABELLED_TASKS:
        return f"too few tasks with labels: {n_tasks_labelled}, not {FEWEST_LABELLED_TASKS}"
    return None


def outweighed(effective: float) -> str | None:
    """Return the reason why a few labels that outweigh the others give no figure; else None."""
    if 0.0 < effective < FEWEST_EFFECTIVE:
        return f"a few labels outweigh the others, which are worth {effective:.0f} equal ones"
    return None


def reason_without_figure(
    contribution: Floats,
    factor: Floats,
    *,
    n_tasks: int,
    n_tasks_uncovered: int,
    n_tasks_labelled: int,
) -> str | None:
    """Return the reason why labels give no figure; None if they give one.

    The arguments are those of `Labels` and of `too_few_labels`.
    """
    reason = too_few_labels(
        n_tasks=n_tasks,
        n_tasks_uncovered=n_tasks_uncovered,
        n_labels=len(contribution),
        n_tasks_labelled=n_tasks_labelled,
    )
    return reason or outweighed(_effective(_importance(contribution, factor)))


def estimate(corrected_tasks: Corrected) -> DebiasedEstimate:
    """Return the mean of corrected values with its interval for other tasks of the same kind.

    On each side the interval is the wider of Student's t and the studentised bootstrap over tasks,
    as for the judge's own interval, because tasks' values may be skewed.
    """
    return _estimate(
        corrected_tasks.values,
        _variance(corrected_tasks),
        corrected_tasks.degrees,
        _reach(corrected_tasks.spread),
    )


def estimated_difference(
    first_model: Corrected,
    second_model: Corrected,
    indices: tuple[Ints, Ints],
) -> DebiasedEstimate:
    """Return the mean of second minus first over tasks that both have, with its interval.

    It is by Student's t: two models' values have similar skewness, so their difference is nearly
    symmetric.

    Args:
        first_model: one model's tasks.
        second_model: the other's.
        indices: the indices of the common tasks in the first and in the second, in the same order.
    """
    first_indices, second_indices = indices
    values = second_model.values[second_indices] - first_model.values[first_indices]
    spread = second_model.spread[second_indices] - first_model.spread[first_indices]
    variance = _sum_variance(spread) + first_model.extra_variance + second_model.extra_variance
    return _estimate(values, variance, _degrees(first_model, second_model))


def _variance(corrected_tasks: Corrected) -> float:
    """Return the variance of the sum of the tasks' values."""
    return _sum_variance(corrected_tasks.spread) + corrected_tasks.extra_variance


def _sum_variance(values: Floats) -> float:
    """Return the variance of the sum of independent values, from the values."""
    return len(values) * float(values.var(ddof=1))


def _degrees(first_model: Corrected, second_model: Corrected) -> float:
    """Return degrees of freedom by the models' shares of the variance (Welch and Satterthwaite)."""
    first_variance = _variance(first_model)
    second_variance = _variance(second_model)
    total = first_variance + second_variance
    if total == 0.0:
        return min(first_model.degrees, second_model.degrees)
    first_part = (first_variance / total) ** 2 / first_model.degrees
    second_part = (second_variance / total) ** 2 / second_model.degrees
    return 1.0 / (first_part + second_part)


def _estimate(
    values: Floats,
    variance: float,
    degrees: float,
    reach: tuple[float, float] = (0.0, 0.0),
) -> DebiasedEstimate:
    """Return an estimate from the variance of the sum of values.

    Its interval is at least as many standard errors long, down and up, as `reach`.
    """
    error = math.sqrt(variance) / len(values)
    student = float(intervals.student_quantile(intervals.UPPER, degrees))
    mean = math.fsum(values) / len(values)
    down, up = reach
    return DebiasedEstimate(
        mean=mean,
        low=mean - error * max(student, down),
        high=mean + error * max(student, up),
        error=error,
    )


def _reach(spread: Floats) -> tuple[float, float]:
    """Return the lengths of an interval down and up in standard errors, by the bootstrap.

    They are 0 if too few tasks differ, and at most `WIDEST` times those by Student's t, as in
    `Studentised.ends`.
    """
    values = spread[:, None]
    n = len(spread)
    differing = intervals.n_differing(values)
    if differing[0] < intervals.FEWEST_DIFFERING:
        return 0.0, 0.0
    weights = intervals.draws(n, _RESAMPLES)
    resampled = intervals.studentised(values, np.ones_like(values), differing, weights)
    tails = np.array([1.0 - intervals.UPPER])
    low_step, high_step = intervals.quantile_pairs(resampled.steps, tails)[0].tolist()
    longest = intervals.WIDEST * float(intervals.student_quantile(intervals.UPPER, n - 1.0))
    # Steps are in standard errors with the number of tasks as the divisor, which are slightly
    # smaller.
    unbiased = math.sqrt((n - 1.0) / n)
    return min(unbiased * high_step, longest), min(unbiased * -low_step, longest)


def _signs(contribution: Floats) -> Floats:
    """Return a column for each sign if both have enough labels for a constant, else one column."""
    is_positive = contribution >= 0.0
    if min(is_positive.sum(), (~is_positive).sum()) < _FEWEST_OF_SIGN:
        return np.ones((len(contribution), 1))
    return np.column_stack([is_positive, ~is_positive]).astype(float)


def _importance(contribution: Floats, factor: Floats) -> Floats:
    """Return the weight of each label's squared residual in the variance.

    It is c^2 (1 - pi) / pi^2 (Poisson sampling).
    """
    n_unlabelled = np.maximum(factor - 1.0, 1e-3 * factor)
    return contribution**2 * factor * n_unlabelled


def _prediction(
    signs: Floats,
    labels: Labels,
    importance: Floats,
    *,
    uses_judge: bool,
) -> tuple[Floats, float]:
    """Return constants and power that minimise the estimated variance.

    It is a fit by weighted least squares, with a power from 0 to 1.
    """
    root = np.sqrt(importance)
    power = 0.0
    if uses_judge:
        design = root[:, None] * np.column_stack([signs, labels.judge])
        fitted = _least_squares(design, root * labels.label)
        power = float(fitted[-1])
        if 0.0 <= power <= 1.0:
            return fitted[:-1], power
        power = min(max(power, 0.0), 1.0)
    target = root * (labels.label - power * labels.judge)
    return _least_squares(root[:, None] * signs, target), power


def _least_squares(design: Floats, target: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(design, target, rcond=_RANK)[0], dtype=float)


def _leverages(design: Floats, importance: Floats) -> Floats:
    """Return the leverage of each label on the fit (MacKinnon and White 1985, HC2)."""
    vectors, sizes, _ = np.linalg.svd(np.sqrt(importance)[:, None] * design, full_matrices=False)
    is_used = sizes > _RANK * sizes.max(initial=0.0)
    leverages = (vectors[:, is_used] ** 2).sum(axis=1)
    return np.asarray(np.minimum(leverages, 0.9), dtype=float)


def _effective(importance: Floats) -> float:
    """Return the equivalent number of equally important labels (Kish 1965)."""
    squares = float((importance**2).sum())
    if squares <= 0.0:
        return 0.0
    return float(importance.sum()) ** 2 / squares


def _extra_variance(residual: Floats, importance: Floats) -> float:
    """Return the possible extra variance of the sum of corrections from unobserved rare errors.

    The interval of Agresti and Coull (1998) adds two cases of each kind to estimate the spread of a
    share. This adds up to two errors: the fewer, the more are observed, and none from six observed
    errors on.
    """
    total = float(importance.sum())
    effective = _effective(importance)
    if effective <= 0.0:
        return 0.0
    observed = float((importance * residual**2).sum())
    n_errors = effective * observed / total
    n_assumed = 2.0 * max(0.0, 1.0 - n_errors / 6.0)
    n_cases = effective + 2.0 * n_assumed
    return max(0.0, total * effective * (n_errors + n_assumed) / n_cases**2 - observed)
