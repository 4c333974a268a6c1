"""The effects of another judge on the mean scores of several models, on the same tasks.

The other judge decides a random sample of criteria, each in the responses of all models. Its
verdicts are the labels of `debiased.py`: a model's effect is the mean of its corrected values minus
its mean by the first judge. Tasks are fixed, so only the sampling of criteria makes an effect
uncertain: with all criteria sampled it is exact.

Models share the sampled criteria, so their errors are correlated. The intervals of several
differences are simultaneous if they reach as far as the largest of all studentised errors does
(single-step max-t: Hothorn, Bretz and Westfall, "Simultaneous Inference in General Parametric
Models", 2008); here by draws from the multivariate t distribution.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.rules.statistics.debiased import Corrected
from tasks.rules.statistics.intervals import Floats, Ints, student_quantile

_DRAWS = 20_000
_SEED = 0


@dataclass(frozen=True)
class SampledModel:
    """A model whose responses were judged again on the sampled criteria.

    Attributes:
        corrected: its tasks' values, corrected by the other judge's verdicts.
        first_mean: its mean score by the first judge on the same tasks.
        criterion: for each label, the index of its criterion in the sample.
        is_complete: true if the sample has all criteria.
        undecided: how far verdicts that the other judge failed to give could move its mean.
    """

    corrected: Corrected
    first_mean: float
    criterion: Ints
    is_complete: bool
    undecided: float


@dataclass(frozen=True)
class Effects:
    """The effects on models that were judged on the same criteria.

    Attributes:
        means: shape (n_models,).
        covariance: of their errors, shape (n_models, n_models).
        undecided: how far undecided verdicts could move each mean, shape (n_models,).
        degrees: degrees of freedom of the labels.
    """

    means: Floats
    covariance: Floats
    undecided: Floats
    degrees: float

    def half_widths(self, level: float) -> Floats:
        """Return how far the interval of each effect reaches to either side."""
        quantile = float(student_quantile((1.0 + level) / 2.0, self.degrees))
        return quantile * np.sqrt(np.diagonal(self.covariance)) + self.undecided

    @cached_property
    def pair_errors(self) -> Floats:
        """The standard errors of the differences of effects, shape (n_models, n_models)."""
        variances = np.diagonal(self.covariance)
        pair_variances = variances[:, None] + variances[None, :] - 2.0 * self.covariance
        return np.sqrt(np.maximum(pair_variances, 0.0))

    @property
    def pair_undecided(self) -> Floats:
        """How far undecided verdicts could move each difference, shape (n_models, n_models); that
        of a model from itself is 0.
        """
        undecided = self.undecided[:, None] + self.undecided[None, :]
        np.fill_diagonal(undecided, 0.0)
        return undecided

    def pair_half_widths(self, level: float) -> Floats:
        """Return how far the interval of each difference of two effects reaches to either side.

        All intervals are simultaneous. Shape (n_models, n_models).
        """
        quantile = float(np.quantile(self._largest_errors, level))
        return quantile * self.pair_errors + self.pair_undecided

    @property
    def interaction_p_value(self) -> float | None:
        """The probability of differences as large as these between effects that are all equal.

        None for one model, and if no difference has an error. Undecided verdicts count as they
        would make effects most alike.
        """
        has_error = self.pair_errors > 0.0
        if not has_error.any():
            return None
        differences = np.abs(self.means[:, None] - self.means[None, :]) - self.pair_undecided
        observed = float((differences[has_error] / self.pair_errors[has_error]).max())
        n_as_large = int((self._largest_errors >= observed).sum())
        return (n_as_large + 1) / (_DRAWS + 1)

    @cached_property
    def _largest_errors(self) -> Floats:
        """Draws of the largest studentised error of all differences, shape (_DRAWS,)."""
        random = np.random.default_rng(_SEED)
        errors = random.multivariate_normal(np.zeros(len(self.means)), self.covariance, _DRAWS)
        scale = np.sqrt(random.chisquare(self.degrees, _DRAWS) / self.degrees)
        largest = np.zeros(_DRAWS)
        for model_a, model_b in np.argwhere(np.triu(self.pair_errors) > 0.0):
            differences = np.abs(errors[:, model_a] - errors[:, model_b])
            largest = np.maximum(largest, differences / self.pair_errors[model_a, model_b])
        return largest / scale


def effects_on(models: Sequence[SampledModel], n_criteria: int) -> Effects:
    """Return the effects on models, which may have different tasks.

    Args:
        models: at least one.
        n_criteria: the number of sampled criteria.
    """
    means = np.zeros(len(models))
    undecided = np.zeros(len(models))
    extra_variances = np.zeros(len(models))
    degrees = math.inf
    # What the sampling of each criterion adds to the error of each mean.
    errors = np.zeros((n_criteria, len(models)))
    for index, model in enumerate(models):
        corrected = model.corrected
        n_tasks = len(corrected.values)
        means[index] = float(corrected.values.mean()) - model.first_mean
        undecided[index] = model.undecided
        degrees = min(degrees, corrected.degrees)
        if not model.is_complete:
            extra_variances[index] = corrected.extra_variance / n_tasks**2
        errors[model.criterion, index] = corrected.sampling_errors / n_tasks
    return Effects(
        means=means,
        covariance=errors.T @ errors + np.diag(extra_variances),
        undecided=undecided,
        degrees=degrees,
    )
