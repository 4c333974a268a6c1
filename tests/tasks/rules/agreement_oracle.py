"""Krippendorff's alpha from its definition."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence


def alpha_by_pairs(units: Sequence[Sequence[float]]) -> float:
    """One minus the disagreement within units divided by that between any two values; NaN if only
    one value occurs.
    """
    within = 0.0
    counts = Counter()
    for unit in units:
        if len(unit) > 1:
            counts.update(unit)
            n_different = sum(a != b for a, b in itertools.permutations(unit, 2))
            within += n_different / (len(unit) - 1)
    n = counts.total()
    between = n * n - sum(count * count for count in counts.values())
    if not between:
        return math.nan
    return 1 - within * (n - 1) / between
