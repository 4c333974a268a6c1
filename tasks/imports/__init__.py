"""Import: responses and verdicts that were made elsewhere, human labels among them."""

from tasks.imports.responses import import_responses
from tasks.imports.retraction import retract
from tasks.imports.verdicts import SHEET_COLUMN, import_verdicts

__all__ = ["SHEET_COLUMN", "import_responses", "import_verdicts", "retract"]
