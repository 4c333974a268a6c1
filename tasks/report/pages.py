"""The pages of a report, in the order of its navigation."""

from collections.abc import Sequence

from tasks.report.categories import CATEGORIES
from tasks.report.data import DATA
from tasks.report.figures import Page
from tasks.report.hard import HARD
from tasks.report.history import HISTORY
from tasks.report.judges import JUDGES
from tasks.report.lengths import LENGTHS
from tasks.report.overview import OVERVIEW

PAGES: Sequence[Page] = (OVERVIEW, CATEGORIES, LENGTHS, DATA, JUDGES, HISTORY, HARD)
