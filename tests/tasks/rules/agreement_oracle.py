"""Krippendorff's alpha from its definition."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence


def alpha_by_pairs(units: Sequence[Sequence[float]]) -> float:
    """One minus the disagreement within units divided by that between any two values; NaN if only
    one value occurs.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    counts = Counter(value for unit in pairable for value in unit)
    n = sum(counts.values())
    within = sum(
        sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1)
        for unit in pairable
    )
    between = n * n - sum(count * count for count in counts.values())
    return 1 - within * (n - 1) / between if between else math.nan
