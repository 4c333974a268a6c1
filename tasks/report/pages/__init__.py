"""The pages of a report, in the order of its navigation."""

from collections.abc import Sequence

from tasks.report.content.figures import Page
from tasks.report.pages.analyses.annotations import ANNOTATIONS
from tasks.report.pages.analyses.cascades import CASCADES
from tasks.report.pages.analyses.conditions import CONDITIONS
from tasks.report.pages.analyses.debiased import DEBIASED
from tasks.report.pages.analyses.reviews import REVIEWS
from tasks.report.pages.analyses.stopping import STOPPING
from tasks.report.pages.capabilities import CAPABILITIES
from tasks.report.pages.categories import CATEGORIES
from tasks.report.pages.data import DATA
from tasks.report.pages.hard import HARD
from tasks.report.pages.history import HISTORY
from tasks.report.pages.judges import JUDGES
from tasks.report.pages.lengths import LENGTHS
from tasks.report.pages.overview import OVERVIEW

PAGES: Sequence[Page] = (
    OVERVIEW, CATEGORIES, CAPABILITIES, LENGTHS, CONDITIONS, STOPPING, DATA, ANNOTATIONS, JUDGES, DEBIASED, CASCADES,
    REVIEWS, HISTORY, HARD,
)  # fmt: skip
