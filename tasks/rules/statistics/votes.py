"""How many independent votes a set of graders is worth whose errors go together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import Floats, quotient

METHOD = "effective-votes-1"
"""The name of the method, stored beside figures; the number grows when the method changes."""
_NOTHING = 1e-9
"""The share of the squares below which a variance is nothing but rounding."""


def effective_votes(moments: NDArray[Any], *, n_voters: int) -> Floats:
    """Return Kish's effective number of votes: k / (1 + (k - 1) rho) for k voters, from 1 to k.

    Their errors have the mean pairwise correlation rho, so that the mean of their votes varies as much as that of so
    many independent ones (the design effect of Kish, "Survey Sampling", 1965, section 5.4; for panels of judges arXiv
    2605.29800). Pairs with a voter who never errs, or always alike, have no correlation and do not count. A negative
    mean counts as 0. NaN where no pair has a correlation.

    Args:
        moments: shape (..., n_pairs, 6): for each pair the number of cases, the sums of both voters' errors, of their
            squares, and of the products.
        n_voters: k, at least two.
    """
    n, a, b, aa, bb, ab = np.moveaxis(np.asarray(moments, dtype=np.float64), -1, 0)
    first, second = n * aa - a * a, n * bb - b * b
    is_defined = (first > _NOTHING * n * aa) & (second > _NOTHING * n * bb)
    correlation = np.zeros(n.shape)
    np.divide(n * ab - a * b, np.sqrt(first * second), out=correlation, where=is_defined)
    n_pairs = is_defined.sum(axis=-1)
    mean = quotient(correlation.sum(axis=-1), n_pairs)
    return np.asarray(n_voters / (1.0 + (n_voters - 1) * np.clip(mean, 0.0, 1.0)))
