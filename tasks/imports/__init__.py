"""Import: responses and verdicts that were made elsewhere, human labels among them, and reviews of rubrics."""

from tasks.imports.files import (
    given_rows,
    in_known_shape,
    number_of,
    refuse_early,
    refuse_unreadable,
    required_text,
    vintage_in,
)
from tasks.imports.responses import import_responses
from tasks.imports.results import FORMATS, import_results, refuse_no_log
from tasks.imports.retraction import refuse_retraction, retract
from tasks.imports.reviews import REVIEW_SHEET_COLUMN, import_reviews
from tasks.imports.verdicts import SHEET_COLUMN, import_verdicts

__all__ = [
    "FORMATS",
    "REVIEW_SHEET_COLUMN",
    "SHEET_COLUMN",
    "given_rows",
    "import_responses",
    "import_results",
    "import_reviews",
    "import_verdicts",
    "in_known_shape",
    "number_of",
    "refuse_early",
    "refuse_no_log",
    "refuse_retraction",
    "refuse_unreadable",
    "required_text",
    "retract",
    "vintage_in",
]
