"""Import: responses and verdicts that were made elsewhere, human labels among them, and reviews of rubrics."""

from tasks.imports.files import refuse_early
from tasks.imports.responses import import_responses
from tasks.imports.results import FORMATS, import_results, refuse_no_log
from tasks.imports.retraction import refuse_retraction, retract
from tasks.imports.reviews import REVIEW_SHEET_COLUMN, import_reviews
from tasks.imports.verdicts import SHEET_COLUMN, import_verdicts

__all__ = [
    "FORMATS",
    "REVIEW_SHEET_COLUMN",
    "SHEET_COLUMN",
    "import_responses",
    "import_results",
    "import_reviews",
    "import_verdicts",
    "refuse_early",
    "refuse_no_log",
    "refuse_retraction",
    "retract",
]
