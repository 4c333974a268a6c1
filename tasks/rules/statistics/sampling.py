"""Random samples with known probabilities, so that estimates can use 1 / probability as weights.

Stratified samples: every unit has a random number, a hash of the seed and the unit's key, and the
units with the smallest numbers of each stratum are drawn: a simple random sample without
replacement (permanent random numbers; Ohlsson, "Coordination of Samples Using Permanent Random
Numbers", 1995). A unit of a stratum with n of N drawn has the probability n / N (Cochran, "Sampling
Techniques", 1977, sections 2.2 and 5.2).

Samples of verdicts to label have probabilities in proportion to the expected information of each
label.

The variance that unlabelled verdicts add to a corrected mean is the sum of `c^2 (1 - pi) / pi`
times the expected squared error (`debiased.py`), where c is what a verdict contributes to the mean
and pi the probability of its label; for a given number of labels it is smallest with
probabilities in proportion to `|c| sqrt(expected squared error)` (Saerndal, Swensson and Wretman,
"Model Assisted Survey Sampling", 1992, section 12.2; for PPI: Zrnic and Candes, "Active Statistical
Inference", 2024).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tasks.rules.identity import digest
from tasks.rules.statistics.intervals import UPPER, Floats, Ints, student_quantile


class SampledUnit(NamedTuple):
    """A unit of a sample: its position in the population, stratum, and probability."""

    position: int
    stratum: str
    probability: float


def stratified_sample(
    keys: Sequence[str],
    strata: Sequence[str],
    n_wanted: int,
    seed: int,
) -> list[SampledUnit]:
    """Return a sample of `n_wanted` units, or all if there are fewer.

    They come as evenly from the strata as their sizes allow.

    Args:
        keys: the unique key of each unit of the population.
        strata: the stratum of each unit; the same for all in a simple random sample.
        n_wanted: at least the number of strata, so that no unit has the probability 0.
        seed: another seed draws another sample.

    Returns:
        The drawn units, in the order of the population.
    """
    members = _members_in_random_order(keys, strata, seed)
    sizes = {stratum: len(positions) for stratum, positions in members.items()}
    return _first_units(members, even_allocation(sizes, n_wanted))


def _members_in_random_order(
    keys: Sequence[str],
    strata: Sequence[str],
    seed: int,
) -> dict[str, list[int]]:
    """Return the positions of the units of each stratum, those with the smallest random numbers
    first.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for position, stratum in enumerate(strata):
        members[stratum].append(position)
    for positions in members.values():
        positions.sort(key=lambda position: digest("sample", seed, keys[position]))
    return members


def _first_units(
    members: Mapping[str, Sequence[int]],
    n_sampled: Mapping[str, int],
) -> list[SampledUnit]:
    """Return the first `n_sampled` units of each stratum, in the order of the population."""
    sampled = []
    for stratum, positions in members.items():
        probability = n_sampled[stratum] / len(positions)
        for position in positions[: n_sampled[stratum]]:
            sampled.append(SampledUnit(position, stratum, probability))
    return sorted(sampled)


def proportional_sample(
    keys: Sequence[str],
    strata: Sequence[str],
    sizes: Floats,
    n_wanted: int,
    seed: int,
) -> list[SampledUnit]:
    """Return a stratified sample that a larger `n_wanted` extends.

    Each stratum gets one unit, then a share of the others by the size of all its units: the next
    one comes from the stratum with the fewest units for its size (the divisor method of Adams).

    Args:
        keys: the unique key of each unit of the population.
        strata: the stratum of each unit.
        sizes: of each unit, above 0.
        n_wanted: at least the number of strata, so that no unit has the probability 0.
        seed: another seed draws another sample.

    Returns:
        The drawn units, in the order of the population.
    """
    members = _members_in_random_order(keys, strata, seed)
    turns = []
    for stratum, positions in members.items():
        stratum_size = float(sizes[positions].sum())
        for rank in range(len(positions)):
            turns.append((rank / stratum_size, stratum))
    n_sampled = Counter(stratum for _, stratum in sorted(turns)[:n_wanted])
    return _first_units(members, n_sampled)


def even_allocation(sizes: Mapping[str, int], n_wanted: int) -> dict[str, int]:
    """Return the number of units to draw from each stratum.

    It is the same number, or all units of a smaller stratum. The remainder goes to the largest
    strata, one unit each. `n_wanted` must be at least the number of strata.
    """
    n_sampled: dict[str, int] = {}
    n_left = min(n_wanted, sum(sizes.values()))
    # The smallest first: larger strata share the units that a small one lacks.
    strata = sorted(sizes, key=lambda stratum: (sizes[stratum], stratum))
    for n_before, stratum in enumerate(strata):
        n_sampled[stratum] = min(sizes[stratum], n_left // (len(strata) - n_before))
        n_left -= n_sampled[stratum]
    return n_sampled


PRIOR_ERROR = 0.15
"""The expected squared error of an unknown judge: one verdict in seven is wrong."""
LEAST_ERROR = 0.04
"""Lower bound of the expected squared error, so that no verdict is left out."""
_PRIOR_LABELS = 10.0
"""Weight of the overall error rate in the rate of a group, as a number of labels."""
_PRIOR_VERDICTS = 2.0
"""Weight of the group's rate in the error of a single verdict, as a number of other judges'
verdicts.
"""
_START_DIGITS = 13
"""Number of hexadecimal digits of a random start: its 52 bits fit a float."""


def group_errors(label_groups: Ints, squared_errors: Floats, verdict_groups: Ints) -> Floats:
    """Return the expected squared error of verdicts by their groups, from labels of such verdicts.

    A group's rate is shrunk towards the rate of all labels, and the latter towards `PRIOR_ERROR`,
    as if there were ten more labels.

    Args:
        label_groups: the group of each label, as a number from 0.
        squared_errors: label minus judge, squared.
        verdict_groups: the group of each verdict.
    """
    total = float(squared_errors.sum()) + _PRIOR_LABELS * PRIOR_ERROR
    overall_rate = total / (len(squared_errors) + _PRIOR_LABELS)
    n_groups = int(verdict_groups.max()) + 1
    n_labels = np.bincount(label_groups, minlength=n_groups)
    totals = np.bincount(label_groups, squared_errors, n_groups)
    rates = (totals + _PRIOR_LABELS * overall_rate) / (n_labels + _PRIOR_LABELS)
    return rates[verdict_groups]


def expected_errors(group_rates: Floats, disagreement: Floats, n_others: Floats) -> Floats:
    """Return the expected squared error of single verdicts.

    Args:
        group_rates: the error of the verdict's group.
        disagreement: mean squared difference from other judges and from the judge's own
            repetitions.
        n_others: the number of these; 0 without any.
    """
    total = _PRIOR_VERDICTS * group_rates + n_others * disagreement
    errors: Floats = np.maximum(total / (_PRIOR_VERDICTS + n_others), LEAST_ERROR)
    return errors


def sampling_sizes(contributions: Floats, errors: Floats) -> Floats:
    """Return the sizes to which probabilities are proportional.

    They are at least a tenth of the mean, so never 0.
    """
    sizes: Floats = np.abs(contributions) * np.sqrt(errors)
    if not sizes.any():
        return np.ones(len(sizes))
    return np.maximum(sizes, 0.1 * float(sizes.mean()))


def sampling_probabilities(sizes: Floats, n_wanted: int) -> Floats:
    """Return probabilities in proportion to sizes that sum to the number of wanted units.

    Probabilities above 1 become 1, and the rest is divided among the other units.

    Args:
        sizes: of the units, above 0.
        n_wanted: at most as many as there are units, else all are certain.
    """
    is_certain = np.full(len(sizes), n_wanted >= len(sizes))
    while not is_certain.all():
        n_left = int(n_wanted - is_certain.sum())
        shares = sizes * n_left / float(sizes[~is_certain].sum())
        is_too_large = ~is_certain & (shares >= 1.0)
        if not is_too_large.any():
            return np.where(is_certain, 1.0, shares)
        is_certain |= is_too_large
    return np.ones(len(sizes))


def systematic_sample(
    probabilities: Floats,
    keys: Sequence[str],
    seed: int,
    groups: Sequence[str],
) -> Ints:
    """Return a sample of fixed size in which each unit has exactly its probability.

    Units are in a random order, each on a segment of a line as long as its probability; every whole
    step from a random start selects the unit that it hits (randomised systematic sampling; Hartley
    and Rao 1962). Order and start are hashes of seed and key, so the same seed draws the same
    units. Units of a group are contiguous, so the number drawn from each group differs from the sum
    of its probabilities by less than one.

    Args:
        probabilities: above 0 and at most 1, with a whole sum.
        keys: the key of each unit.
        seed: another seed draws another sample.
        groups: the group of each unit.

    Returns:
        The sampled indices, in the order of the units.
    """
    order, start = _random_line(tuple(keys), seed, tuple(groups))
    ends = np.cumsum(probabilities[order])
    # The sum is whole except for rounding, which must not add or drop a unit.
    ends[-1] = round(ends[-1])
    n_steps = np.floor(ends - start)
    is_hit = np.diff(n_steps, prepend=math.floor(-start)) > 0
    return np.sort(order[is_hit])


@lru_cache(maxsize=1)
def _random_line(keys: tuple[str, ...], seed: int, groups: tuple[str, ...]) -> tuple[Ints, float]:
    """Return the random order of units, group by group, and the random start.

    They are kept for samples of other sizes.
    """

    def line_key(index: int) -> tuple[str, str]:
        return groups[index], digest("draw", seed, keys[index])

    order = np.array(sorted(range(len(keys)), key=line_key))
    start = int(digest("start", seed, *sorted(keys))[:_START_DIGITS], 16) / 16**_START_DIGITS
    return order, start


def label_variance(contributions: Floats, errors: Floats, probabilities: Floats) -> float:
    """Return the variance that unlabelled verdicts should add to the sum of contributions."""
    return float((contributions**2 * errors * (1.0 - probabilities) / probabilities).sum())


def expected_width(
    task_variance: float,
    variances: Sequence[float],
    n_labels: Sequence[float],
    n_known: int = 0,
) -> float:
    """Return the expected width of a 95 % interval.

    Args:
        task_variance: the variance of the mean with a label for every verdict.
        variances: variance added by unlabelled verdicts for each of several sheets, which are
            weighted by their labels.
        n_labels: number of labels of each sheet.
        n_known: number of labels that represent only themselves, which add degrees of freedom.
    """
    total = sum(n_labels)
    variance = 0.0
    for n, sheet_variance in zip(n_labels, variances, strict=True):
        variance += (n / total) ** 2 * sheet_variance
    # A correction by labels fits up to three numbers: a constant for each sign of a contribution,
    # and the weight of the judge's verdict (`debiased.py`).
    quantile = float(student_quantile(UPPER, max(1.0, total + n_known - 3.0)))
    return 2.0 * quantile * math.sqrt(task_variance + variance)
