"""The variance of a mean score by its sources, and the interval that more of one source would give.

A score is y = mean + task + response + repetition: a task's difficulty, a response to it (a trial),
and a repetition of the judge on the response (a judge trial), nested and independent. The mean
score is over tasks, of means over responses, of means over repetitions.

The variances of these effects are estimated without bias for any numbers of responses and
repetitions, by the method of moments on unweighted means (Burdick and Graybill, "Confidence
Intervals on Variance Components", 1992; for equal numbers it is the nested analysis of variance,
Searle, Casella and McCulloch, "Variance Components", 1992). Estimates are not truncated, so they
may be negative.

Each estimate is a ratio of sums over tasks. Where it uses other estimates, a task's part contains
their error to first order (the delta method), so that its interval is that of a pooled share
(`ratio_intervals`): whole tasks are resampled, and no distribution is assumed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

from tasks.rules.statistics.intervals import (
    UPPER,
    Floats,
    Ints,
    have_few_tasks,
    mean_intervals,
    ratio_intervals,
    student_quantile,
)

METHOD = "unweighted-means-1"
FURTHER_TASKS = 100
FEWEST_JUDGES = 5
"""A variance of the choice of judge needs at least this many judges."""
_NOT_SEPARABLE = "not separable"
"""Nothing is repeated, so the variance is part of that of the source before it."""


@dataclass(frozen=True)
class Source:
    """A source of the variance of a mean score; a value is None if it is unknown.

    Attributes:
        variance: of the effect on one score.
        ci_low: lower end of its 95 % interval.
        ci_high: upper end.
        is_small: true if the interval may be too narrow.
        share: the part of the estimated variance of the mean.
        width: of the mean's 95 % interval now.
        width_after: the expected width with one more response to each task, one more repetition for
            each response, `FURTHER_TASKS` more tasks, or one more judge.
        single_width: the expected width with one response to each task, or one repetition.
        note: the reason why the variance is unknown; for the choice among few judges, the lowest
            and the highest mean.
    """

    variance: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    is_small: bool | None = None
    share: float | None = None
    width: float | None = None
    width_after: float | None = None
    single_width: float | None = None
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

    Without degrees it is not separable: it counts as 0, and is part of the variance before it.
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
        shares = self.variance * factors + errors * factors.sum() / self.degrees.sum()
        return np.asarray(shares)


def task_scores(tasks: Ints, responses: Ints, values: Floats) -> TaskScores:
    """Return the means of each task's scores, and the sums of their squared distances.

    Args:
        tasks: the task of each score.
        responses: the response of each score; responses to different tasks have different numbers.
        values: the scores, before clipping.
    """
    _, first_rows, response_index = np.unique(responses, return_index=True, return_inverse=True)
    _, task_index = np.unique(tasks[first_rows], return_inverse=True)
    n_scores = _sums(response_index)  # (n_responses,)
    response_means = _sums(response_index, values) / n_scores
    n_responses = _sums(task_index)
    means = _sums(task_index, response_means) / n_responses
    judge_distances = values - response_means[response_index]
    response_distances = response_means - means[task_index]
    return TaskScores(
        means=means,
        n_responses=n_responses,
        inverse=_sums(task_index, 1.0 / n_scores),
        inverse_after=_sums(task_index, 1.0 / (n_scores + 1.0)),
        n_repetitions=_sums(task_index, n_scores - 1.0),
        response_squares=_sums(task_index, response_distances**2),
        judge_squares=_sums(task_index, _sums(response_index, judge_distances**2)),
    )


def _sums(index: Ints, values: Floats | None = None) -> Floats:
    """Return the sums of the values with each index; without values, their number."""
    return np.bincount(index, values).astype(float)


def components(scores: TaskScores) -> tuple[Component, Component, Component]:
    """Return the variances of tasks, responses and repetitions, from at least two tasks.

    With m responses to a task, the expected squares of its responses are (m - 1) times the variance
    of responses + (1 - 1/m) `inverse` times that of repetitions. The expected squared distance of
    its mean from that of all tasks, times n / (n - 1), is on average the sum of the variances times
    their `mean_factors`.
    """
    n_tasks = len(scores.means)
    m = scores.n_responses
    repetitions = Component(scores.judge_squares, scores.n_repetitions)
    by_repetitions = repetitions.contribution((1.0 - 1.0 / m) * scores.inverse)
    responses = Component(scores.response_squares - by_repetitions, m - 1.0)
    task_factors, response_factors, repetition_factors = mean_factors(m, scores.inverse)
    distances = (scores.means - scores.means.mean()) ** 2 * (n_tasks / (n_tasks - 1))
    within_tasks = responses.contribution(response_factors)
    within_tasks += repetitions.contribution(repetition_factors)
    return Component(distances - within_tasks, task_factors), responses, repetitions


def mean_factors(n_responses: Floats, inverse: Floats) -> Sequence[Floats]:
    """Return the factor of each variance in the variance of a task's mean.

    The arguments are those of `TaskScores`.
    """
    return np.ones_like(n_responses), 1.0 / n_responses, inverse / n_responses**2


@dataclass(frozen=True)
class Estimates:
    """The variances of a model's scores, and the width of its mean's 95 % interval.

    Attributes:
        scores: the scores by task.
        components: the variances of tasks, responses and repetitions.
        width: of the interval for other tasks.
    """

    scores: TaskScores
    components: Sequence[Component]
    width: float

    def expected_width(self, n_responses: Floats, inverse: Floats) -> float:
        """Return the width with other numbers of responses and repetitions, as in `TaskScores`.

        A negative variance counts as 0.
        """
        variance_now = self._variance(self.scores.n_responses, self.scores.inverse)
        if variance_now == 0.0:
            return self.width
        return self.width * math.sqrt(self._variance(n_responses, inverse) / variance_now)

    def _variance(self, n_responses: Floats, inverse: Floats) -> float:
        """Return the mean over tasks of the variance of a task's mean."""
        variance = 0.0
        factors = mean_factors(n_responses, inverse)
        for component, task_factors in zip(self.components, factors, strict=True):
            variance += max(component.variance, 0.0) * float(task_factors.mean())
        return variance

    def source(
        self,
        index: int,
        width_after: float,
        single_width: float | None = None,
    ) -> Source:
        """Return the component at an index of `components` as a source."""
        component = self.components[index]
        if not component.is_separable:
            return Source(width=self.width, note=_NOT_SEPARABLE)
        parts = component.parts[:, None]
        ((low, high),) = ratio_intervals(parts, component.degrees[:, None]).tolist()
        factors = mean_factors(self.scores.n_responses, self.scores.inverse)[index]
        share = None
        total = float(self.scores.means.var(ddof=1))
        if total > 0.0:
            share = round(component.variance * float(factors.mean()) / total, 12)
        return Source(
            variance=component.variance,
            ci_low=low,
            ci_high=high,
            is_small=bool(have_few_tasks(parts)[0]),
            share=share,
            width=self.width,
            width_after=width_after,
            single_width=single_width,
        )


def sources(tasks: Ints, responses: Ints, values: Floats) -> dict[str, Source]:
    """Return the sources of the variance of a model's mean score under one judge.

    The arguments are those of `task_scores`, with at least two tasks.
    """
    scores = task_scores(tasks, responses, values)
    ((low, high),) = mean_intervals(scores.means[:, None]).tolist()
    estimates = Estimates(scores, components(scores), high - low)
    m = scores.n_responses
    inverse = scores.inverse
    n_tasks = len(m)
    n_after = n_tasks + FURTHER_TASKS
    student_now = float(student_quantile(UPPER, n_tasks - 1.0))
    student_after = float(student_quantile(UPPER, n_after - 1.0))
    tasks_ratio = math.sqrt(n_tasks / n_after) * student_after / student_now
    return {
        "tasks": estimates.source(index=0, width_after=estimates.width * tasks_ratio),
        "trials": estimates.source(
            index=1,
            width_after=estimates.expected_width(m + 1.0, inverse * (1.0 + 1.0 / m)),
            single_width=estimates.expected_width(np.ones(n_tasks), inverse / m),
        ),
        "judge trials": estimates.source(
            index=2,
            width_after=estimates.expected_width(m, scores.inverse_after),
            # With one repetition each, `inverse` is the number of responses.
            single_width=estimates.expected_width(m, inverse=m),
        ),
    }


def judge_choice(means: Floats) -> Source:
    """Return the choice of judge as a source of the variance of the mean over several judges.

    Judges and tasks are crossed: the variance of judges' means is that of the choice + that of the
    interaction of judges and tasks / number of tasks (Searle, Casella and McCulloch, 1992). Judges
    are the sample, so the interval is that of a variance of few normal effects (chi-square), with
    the interaction taken as known. The width is that of an interval for other tasks and other
    judges; its degrees of freedom are Satterthwaite's (1946).

    Args:
        means: the means of at least two tasks under at least two judges, from the same responses,
            shape (n_tasks, n_judges).
    """
    n_tasks, n_judges = means.shape
    judge_means = means.mean(axis=0)
    if n_judges < FEWEST_JUDGES:
        judge_range = f"{judge_means.min():.3f} to {judge_means.max():.3f}"
        return Source(note=f"means {judge_range}")
    degrees = n_judges - 1.0
    task_means = means.mean(axis=1)
    distances = means - task_means[:, None] - judge_means + means.mean()
    # The part of the interaction in the variance of judges' means.
    interaction = float((distances**2).sum()) / ((n_tasks - 1) * degrees * n_tasks)
    judge_variance = float(judge_means.var(ddof=1))
    chi_squares = scipy.special.chdtri(degrees, np.array([1.0 - UPPER, UPPER]))
    low, high = (judge_variance * degrees / chi_squares - interaction).tolist()
    widths = []
    for n in (n_judges, n_judges + 1):
        # The task means are over `n_judges` judges, and so is the interaction in them.
        by_tasks = (
            float(task_means.var(ddof=1)) / n_tasks + interaction / n - interaction / n_judges
        )
        by_judges = max(judge_variance - interaction, 0.0) / n
        widths.append(_crossed_width(max(by_tasks, 0.0), n_tasks, by_judges, n))
    return Source(
        variance=judge_variance - interaction,
        ci_low=low,
        ci_high=high,
        width=widths[0],
        width_after=widths[1],
    )


def _crossed_width(by_tasks: float, n_tasks: int, by_judges: float, n_judges: int) -> float:
    """Return the width of the 95 % interval of a mean with a variance by tasks and one by
    judges.
    """
    squares = by_tasks**2 / (n_tasks - 1) + by_judges**2 / (n_judges - 1)
    if squares == 0.0:
        return 0.0
    variance = by_tasks + by_judges
    student = float(student_quantile(UPPER, variance**2 / squares))
    return 2.0 * student * math.sqrt(variance)
