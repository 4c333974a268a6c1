"""The variance of a mean score by its sources, and the interval that more of one source would give.

A score is y = mean + task + response + repetition: a task's difficulty, a response to it (a trial),
and a repetition of the judge on the response (a judge trial), nested and independent. The mean
score is over tasks, of means over responses, of means over repetitions.

The variances of these effects are estimated without bias for any numbers of responses and
repetitions, by the method of moments on unweighted means (Burdick and Graybill, "Confidence
Intervals on Variance Components", 1992, chapter 5; for equal numbers it is the nested analysis of
variance, Searle, Casella and McCulloch, "Variance Components", 1992, section 4.6). Estimates are
not truncated, so they may be negative.

Each estimate is a ratio of sums over tasks. Where it uses other estimates, a task's part contains
their error to first order (the delta method), so that its interval is that of a pooled share
(`ratio_intervals`): whole tasks are resampled, and no distribution is assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

from tasks.rules.statistics.intervals import (
    Floats,
    Ints,
    mean_intervals,
    ratio_intervals,
    rest_on_few,
    student_quantile,
)

METHOD = "unweighted-means-1"
FURTHER_TASKS = 100
FEWEST_JUDGES = 5
"""A variance of the choice of judge needs at least this many judges."""
_UPPER = 0.975
"""Probability below the upper end of a 95 % interval."""


@dataclass(frozen=True)
class Source:
    """A source of the variance of a mean score.

    Attributes:
        variance: of the effect on one score; None if it is not separable.
        ci_low: lower end of its 95 % interval.
        ci_high: upper end.
        share: the part of the estimated variance of the mean.
        width: of the mean's 95 % interval now.
        width_after: the expected width with one more response to each task, one more repetition for
            each response, `FURTHER_TASKS` more tasks, or one more judge.
        single_width: the expected width with one response to each task, or one repetition.
        lowest: the lowest mean of a judge.
        highest: the highest mean of a judge.
        note: the reason why it is not separable.
    """

    variance: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    is_small: bool | None = None
    share: float | None = None
    width: float | None = None
    width_after: float | None = None
    single_width: float | None = None
    lowest: float | None = None
    highest: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class TaskScores:
    """The scores of each task; all arrays have the shape (n_tasks,).

    Attributes:
        means: of the means of responses.
        n_responses: number of responses.
        inverse: sum over responses of 1 / number of repetitions.
        inverse_after: the same with one more repetition each.
        n_repetitions: number of repetitions beyond the first of each response.
        response_squares: squared distances of responses' means from the task's, summed.
        judge_squares: squared distances of scores from their response's mean, summed.
    """

    means: Floats
    n_responses: Floats
    inverse: Floats
    inverse_after: Floats
    n_repetitions: Floats
    response_squares: Floats
    judge_squares: Floats


@dataclass(frozen=True)
class Component:
    """The variance of an effect: the sum of `parts` / the sum of `degrees`, shape (n_tasks,) each.

    Without degrees it is not separable: what is above it contains it, and here it is 0.
    """

    parts: Floats
    degrees: Floats

    @property
    def is_separable(self) -> bool:
        """True if a task has the repetitions that the estimate needs."""
        return bool(self.degrees.any())

    @property
    def variance(self) -> float:
        """The estimate, which may be negative."""
        return float(self.parts.sum() / self.degrees.sum()) if self.is_separable else 0.0

    def contribution(self, factors: Floats) -> Floats:
        """Return the factors times the variance for each task, with the error of the estimate.

        The errors of all tasks sum to 0.
        """
        if not self.is_separable:
            return np.zeros_like(factors)
        errors = self.parts - self.variance * self.degrees
        return self.variance * factors + errors * (factors.sum() / self.degrees.sum())


@dataclass(frozen=True)
class Components:
    """The components of scores, from the outermost."""

    tasks: Component
    trials: Component
    judge_trials: Component

    def mean_variance(self, n_responses: Floats, inverse: Floats) -> float:
        """Return the variance of a mean over one task with these numbers, in the mean over tasks.

        A negative estimate counts as 0 here.

        Args:
            n_responses: of each task, shape (n_tasks,).
            inverse: as in `TaskScores`.
        """
        variance = max(self.tasks.variance, 0.0)
        variance += max(self.trials.variance, 0.0) * float(np.mean(1.0 / n_responses))
        variance += max(self.judge_trials.variance, 0.0) * float(np.mean(inverse / n_responses**2))
        return variance


def task_scores(tasks: Ints, responses: Ints, values: Floats) -> TaskScores:
    """Return the sums of scores by task.

    Args:
        tasks: the task of each score.
        responses: the response of each score; responses to different tasks have different numbers.
        values: the scores, before clipping.
    """
    _, first_rows, response_index = np.unique(responses, return_index=True, return_inverse=True)
    _, task_index = np.unique(tasks[first_rows], return_inverse=True)
    n_scores = np.bincount(response_index)  # (n_responses,)
    response_means = np.bincount(response_index, values) / n_scores
    judge_squares = np.bincount(response_index, (values - response_means[response_index]) ** 2)
    n_responses = np.bincount(task_index).astype(float)
    means = np.bincount(task_index, response_means) / n_responses
    return TaskScores(
        means=means,
        n_responses=n_responses,
        inverse=np.bincount(task_index, 1.0 / n_scores),
        inverse_after=np.bincount(task_index, 1.0 / (n_scores + 1)),
        n_repetitions=np.bincount(task_index, n_scores - 1.0),
        response_squares=np.bincount(task_index, (response_means - means[task_index]) ** 2),
        judge_squares=np.bincount(task_index, judge_squares),
    )


def components(scores: TaskScores) -> Components:
    """Return the variance components of the scores of at least two tasks.

    With m responses to a task, the expected squares of its responses are (m - 1) times the variance
    of responses + (1 - 1/m) `inverse` times that of repetitions. The expected squared distance of
    its mean from that of all tasks, times n / (n - 1), is on average the variance of tasks + that
    of responses / m + that of repetitions times `inverse` / m^2.
    """
    m = scores.n_responses
    n_tasks = len(m)
    judge_trials = Component(scores.judge_squares, scores.n_repetitions)
    by_judge = judge_trials.contribution((1.0 - 1.0 / m) * scores.inverse)
    trials = Component(scores.response_squares - by_judge, m - 1.0)
    distances = (scores.means - scores.means.mean()) ** 2 * (n_tasks / (n_tasks - 1))
    within_tasks = trials.contribution(1.0 / m)
    within_tasks += judge_trials.contribution(scores.inverse / m**2)
    tasks = Component(distances - within_tasks, np.ones(n_tasks))
    return Components(tasks, trials, judge_trials)


def sources(tasks: Ints, responses: Ints, values: Floats) -> dict[str, Source]:
    """Return the sources of the variance of a model's mean score under one judge.

    The arguments are those of `task_scores`, with at least two tasks.
    """
    scores = task_scores(tasks, responses, values)
    found = components(scores)
    m = scores.n_responses
    inverse = scores.inverse
    ((low, high),) = mean_intervals(scores.means[:, None]).tolist()
    width = high - low
    variance = found.mean_variance(m, inverse)

    def expected_width(n_responses: Floats, inverse: Floats) -> float:
        if variance == 0.0:
            return width
        return width * (found.mean_variance(n_responses, inverse) / variance) ** 0.5

    n_tasks = len(m)
    n_after = n_tasks + FURTHER_TASKS
    student = student_quantile(_UPPER, np.array([n_tasks - 1.0, n_after - 1.0]))
    return {
        "tasks": _source(
            found.tasks,
            scores,
            factors=np.ones(n_tasks),
            width=width,
            width_after=width * (n_tasks / n_after) ** 0.5 * float(student[1] / student[0]),
        ),
        "trials": _source(
            found.trials,
            scores,
            factors=1.0 / m,
            width=width,
            width_after=expected_width(m + 1.0, inverse * (1.0 + 1.0 / m)),
            single_width=expected_width(np.ones(n_tasks), inverse / m),
            note="not separable: no task has several responses; part of the variance of tasks",
        ),
        "judge trials": _source(
            found.judge_trials,
            scores,
            factors=inverse / m**2,
            width=width,
            width_after=expected_width(m, scores.inverse_after),
            single_width=expected_width(m, m),
            note="not separable: no response is judged twice; part of the variance above",
        ),
    }


def _source(
    component: Component,
    scores: TaskScores,
    *,
    factors: Floats,
    width: float,
    width_after: float,
    single_width: float | None = None,
    note: str = "",
) -> Source:
    """Return a source; `factors` times its variance is its part in the variance of a task's
    mean.
    """
    if not component.is_separable:
        return Source(width=width, note=note)
    parts = component.parts[:, None]
    degrees = component.degrees[:, None]
    ((low, high),) = ratio_intervals(parts, degrees).tolist()
    total = float(scores.means.var(ddof=1))
    share = None
    if total > 0.0:
        share = component.variance * float(factors.mean()) / total
    return Source(
        variance=component.variance,
        ci_low=low,
        ci_high=high,
        is_small=bool(rest_on_few(parts)[0]),
        share=share,
        width=width,
        width_after=width_after,
        single_width=single_width,
    )


def judge_choice(means: Floats) -> Source:
    """Return the choice of judge as a source of the variance of the mean over several judges.

    Judges and tasks are crossed: the variance of judges' means is that of the choice + that of the
    interaction of judges and tasks / number of tasks (Searle, Casella and McCulloch, 1992, section
    4.7). Judges are the sample, so the interval is that of a variance of few normal effects
    (chi-square), with the interaction taken as known. The interval of the mean is for other tasks
    and other judges; its degrees of freedom are Satterthwaite's (1946).

    Args:
        means: the means of at least two tasks under at least two judges, from the same responses,
            shape (n_tasks, n_judges).
    """
    n_tasks, n_judges = means.shape
    judge_means = means.mean(axis=0)
    lowest = float(judge_means.min())
    highest = float(judge_means.max())
    if n_judges < FEWEST_JUDGES:
        note = f"fewer than {FEWEST_JUDGES} judges: only the range of their means"
        return Source(lowest=lowest, highest=highest, note=note)
    degrees = n_judges - 1.0
    spread = float(judge_means.var(ddof=1))
    task_means = means.mean(axis=1)
    distances = means - task_means[:, None] - judge_means + means.mean()
    interaction = float((distances**2).sum()) / ((n_tasks - 1) * degrees)
    noise = interaction / n_tasks
    task_variance = float(task_means.var(ddof=1)) - interaction / n_judges

    def expected_width(n: int) -> float:
        of_tasks = (task_variance + interaction / n) / n_tasks
        of_judges = max(spread - noise, 0.0) / n
        squares = of_tasks**2 / (n_tasks - 1) + of_judges**2 / (n - 1)
        variance = of_tasks + of_judges
        student = student_quantile(_UPPER, variance**2 / squares)
        return 2.0 * float(student) * variance**0.5

    chi_squares = scipy.special.chdtri(degrees, np.array([1.0 - _UPPER, _UPPER]))
    low, high = (spread * degrees / chi_squares - noise).tolist()
    width = expected_width(n_judges)
    return Source(
        variance=spread - noise,
        ci_low=low,
        ci_high=high,
        is_small=n_judges < 2 * FEWEST_JUDGES,
        width=width,
        width_after=expected_width(n_judges + 1),
        lowest=lowest,
        highest=highest,
    )


Sources = Mapping[str, Source]
