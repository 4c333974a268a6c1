"""The pages of a report, in the order of its navigation."""

from collections.abc import Sequence

from tasks.report.content.figures import Page
from tasks.report.pages.capabilities import CAPABILITIES
from tasks.report.pages.categories import CATEGORIES
from tasks.report.pages.conditions import CONDITIONS, STOPPING
from tasks.report.pages.corrections import CASCADES, DEBIASED
from tasks.report.pages.data import DATA
from tasks.report.pages.hard import HARD
from tasks.report.pages.history import HISTORY
from tasks.report.pages.judges import JUDGES
from tasks.report.pages.lengths import LENGTHS
from tasks.report.pages.overview import OVERVIEW
from tasks.report.pages.reviews import ANNOTATIONS, REVIEWS

PAGES: Sequence[Page] = (
    OVERVIEW, CATEGORIES, CAPABILITIES, LENGTHS, CONDITIONS, STOPPING, DATA, ANNOTATIONS, JUDGES, DEBIASED, CASCADES,
    REVIEWS, HISTORY, HARD,
)  # fmt: skip
COMPARE = Page(
    "compare",
    "Compare",
    "Two models, vintages (such as two nights), runs or judges, paired by task: the difference with its interval, and "
    "every verdict that changed.",
    template="compare.html",
)
"""In a folder of files the page only says how to open it."""
LIVE = Page(
    "live", "Live", "Runs in progress: coverage, calls, cost, failures, and the ranking so far.", template="live.html"
)
