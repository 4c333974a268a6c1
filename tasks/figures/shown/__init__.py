"""All figures, each page of the report a module; the pages in the order of its navigation."""

from collections.abc import Sequence

from tasks.figures.figure import Page
from tasks.figures.shown.capabilities import CAPABILITIES
from tasks.figures.shown.categories import CATEGORIES
from tasks.figures.shown.comparisons import COMPARE as COMPARE
from tasks.figures.shown.conditions import CONDITIONS, STOPPING
from tasks.figures.shown.corrections import CASCADES, DEBIASED
from tasks.figures.shown.data import DATA
from tasks.figures.shown.hard import HARD
from tasks.figures.shown.history import HISTORY
from tasks.figures.shown.judges import JUDGES
from tasks.figures.shown.lengths import LENGTHS
from tasks.figures.shown.overview import OVERVIEW
from tasks.figures.shown.reviews import ANNOTATIONS, REVIEWS

PAGES: Sequence[Page] = (
    OVERVIEW, CATEGORIES, CAPABILITIES, LENGTHS, CONDITIONS, STOPPING, DATA, ANNOTATIONS, JUDGES, DEBIASED, CASCADES,
    REVIEWS, HISTORY, HARD,
)  # fmt: skip
LIVE = Page(
    "live", "Live", "Runs in progress: coverage, calls, cost, failures, and the ranking so far.", template="live.html"
)
