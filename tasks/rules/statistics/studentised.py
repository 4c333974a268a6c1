"""The interval of a mean or a pooled share over tasks, and the test that says the same.

On each side the interval is the wider of the studentised bootstrap and Student's t. Student's t has the degrees of
freedom of the tasks that differ from the commonest value: of 100 tasks of which 8 differ, 8 show the spread.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.quantiles import Floats, sorted_quantile_pairs, student_quantile, student_two_sided

Draws = NDArray[np.floating[Any]]
Singles = NDArray[np.float32]

WIDEST = 2.0
"""One side by the bootstrap is at most so many times that of Student's t with all tasks."""
TOUCHES = 1e-5
"""An interval that ends nearer to a value than this share of the estimate's distance touches it, but for rounding."""
_NO_SPREAD = 1e-6
"""The share of the sample's squared spread below which a resample has none but rounding."""


@dataclass(frozen=True, slots=True)
class Studentised:
    """Means or pooled shares with all that intervals around them and tests of them are made of, one entry a figure.

    Attributes:
        ratio: the figures.
        error: their standard errors, with the number of tasks as the divisor.
        n_counted: tasks that count.
        n_differing: those of them that differ from the commonest value.
        steps: how many of its own standard errors each resample lies off, sorted, shape (n_figures, n_resamples).
    """

    ratio: Floats
    error: Floats
    n_counted: Floats
    n_differing: Floats
    steps: Singles

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Low and high of the interval at a level."""
        below, above = sorted_quantile_pairs(self.steps, np.full(len(self.ratio), (1.0 - level) / 2.0)).T
        probability = (1.0 + level) / 2.0
        widest = WIDEST * student_quantile(probability, self.n_counted - 1.0)
        least = student_quantile(probability, self.n_differing - 1.0) * self._unbiased
        low = self.ratio - self.error * np.clip(above, least, np.maximum(widest, least))
        return low, self.ratio + self.error * np.clip(-below, least, np.maximum(widest, least))

    def p_values(self) -> Floats:
        """For each figure the smallest error, one minus the level, at which its interval leaves 0 out.

        An interval that ends within `TOUCHES` of the figure's distance from 0 does not leave it out.
        """
        off = (1.0 - TOUCHES) * np.abs(self.ratio) / self.error
        by_bootstrap = np.array([
            _two_sided(steps if ratio > 0 else -steps[::-1], each)
            for steps, ratio, each in zip(self.steps, self.ratio, off, strict=True)
        ])  # fmt: skip
        by_widest = student_two_sided(off / WIDEST, self.n_counted - 1.0)
        by_student = student_two_sided(off / self._unbiased, self.n_differing - 1.0)
        return np.asarray(np.maximum(by_student, np.minimum(by_bootstrap, by_widest)))

    @property
    def _unbiased(self) -> Floats:
        """From the standard error here to that of Student's t."""
        return np.asarray(np.sqrt(self.n_counted / (self.n_counted - 1.0)))


def _two_sided(steps: Draws, reached: float) -> float:
    """The smallest error at which the upper quantile of the steps is below `reached`, interpolated as for intervals."""
    steps = steps[~np.isnan(steps)]
    above = int(np.searchsorted(steps, reached))
    if above in {0, len(steps)}:
        return 0.0 if above else 1.0
    low, high = float(steps[above - 1]), float(steps[above])
    place = above - 1 + (reached - low) / (high - low)
    return min(1.0, 2.0 * (1.0 - place / (len(steps) - 1)))


def studentised(
    numerators: Floats, denominators: Floats, n_differing: NDArray[np.int64], weights: Draws
) -> Studentised:
    """What intervals of pooled shares are made of; each figure must have at least two tasks that differ.

    The standard error is that of a ratio of sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Resamples are worked out in single precision: an interval's end is off by a millionth of its length at most, far
    less than by the number of resamples.
    """
    total = denominators.sum(axis=0)
    ratio = numerators.sum(axis=0) / total
    # What a task adds beyond its share; sums to nothing, which also keeps the second moments free of cancellation.
    excess = numerators - ratio * denominators
    spread = np.sqrt((excess**2).sum(axis=0))
    standard = excess / np.where(spread > 0.0, spread, 1.0)
    steps = _steps(standard.astype(np.float32), denominators.astype(np.float32), weights)
    steps.sort(axis=1)
    return Studentised(
        ratio=ratio,
        error=spread / total,
        n_counted=(denominators > 0).sum(axis=0).astype(np.float64),
        n_differing=n_differing.astype(np.float64),
        steps=steps,
    )


def distinct_columns(columns: NDArray[Any]) -> tuple[NDArray[Any], list[int]]:
    """The columns without repetitions, and for each column its place among them."""
    places: dict[bytes, int] = {}
    which = [places.setdefault(column.tobytes(), len(places)) for column in columns.T]
    return columns[:, np.unique(which, return_index=True)[1]], which


def _steps(excess: Singles, denominators: Singles, weights: Draws) -> Singles:
    """How many of its own standard errors each resample lies off, shape (n_figures, n_resamples).

    The squares of a figure's `excess` sum to 1, or to 0 where there is no spread. NaN where the resample holds none of
    the figure's tasks. A resample without spread lies off by very many.
    """
    summed = [excess, excess**2]
    # Most figures count the same tasks. All tasks count alike, or some do not count at all: then some sums are others.
    counted, which = distinct_columns(denominators)
    are_ones = (counted == 1.0).all()
    is_mask = are_ones or ((counted == 0.0) | (counted == 1.0)).all()
    if not are_ones:
        summed += [counted] if is_mask else [counted, counted**2, excess * denominators]
    # One large product takes half the time of several small ones, each of which would go through all weights.
    ends = np.cumsum([each.shape[1] for each in summed])[:-1]
    moved, squares, *others = np.split(np.concatenate(summed, axis=1).T @ weights.T, ends)
    # A column of a larger task set's draws need not sum to the number of tasks.
    total = others[0][which] if others else np.broadcast_to(weights.sum(axis=1), moved.shape)
    crossed, squared = (others[2], others[1][which]) if len(others) > 1 else (moved, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = moved / total  # NaN without any of the figure's tasks, and with it all that follows
        # The spread about the resample's own ratio, multiplied out.
        squares += off * (off * squared - 2 * crossed)
        np.maximum(squares, _NO_SPREAD, out=squares)
        steps = np.divide(moved, np.sqrt(squares), dtype=np.float32)
    steps[(excess == 0.0).all(axis=0)] = 0.0
    return steps
