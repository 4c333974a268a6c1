"""Few resamples, for warehouses with many measured figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

from tasks.rules.statistics.agreement import agreement_intervals
from tasks.rules.statistics.intervals import draws


@contextmanager
def few_resamples(resamples: int) -> Iterator[None]:
    """Draw few resamples for figures that are measured together: their time matters, their last
    digits do not.
    """
    few = partial(draws, resamples=resamples)

    def with_few(tables, *measures):
        sampled = few(len(tables)) if tables.shape[1] > 1 else None
        return agreement_intervals(tables, *measures, sampled=sampled)

    with (
        patch("tasks.measures.scores.draws", few),
        patch("tasks.measures.agreement.agreement_intervals", with_few),
    ):
        yield
