"""A figure with its interval."""

from typing import Any, NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A figure and the ends of its 95 % interval over tasks; None where one is not known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float, more: float = 0.0) -> "Estimate":
        """The figure times a number that is not negative, plus another."""
        return Estimate(*(None if each is None else each * factor + more for each in self))


UNKNOWN = Estimate()


def estimate(value: Any, ends: Any = (np.nan, np.nan)) -> Estimate:
    """An estimate from numbers that may be NaN."""
    return Estimate(*(None if np.isnan(each) else float(each) for each in (value, *ends)))
