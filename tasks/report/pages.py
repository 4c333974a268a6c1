"""The pages of a report, in the order of its navigation."""

from collections.abc import Sequence

from tasks.report.figures import Page
from tasks.report.overview import OVERVIEW

PAGES: Sequence[Page] = (OVERVIEW,)
