"""Import: responses and verdicts that were made elsewhere, human labels among them."""

from tasks.imports.responses import import_responses
from tasks.imports.retraction import retract
from tasks.imports.verdicts import import_verdicts

__all__ = ["import_responses", "import_verdicts", "retract"]
