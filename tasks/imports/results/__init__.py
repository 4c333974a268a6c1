"""Import of what other harnesses wrote: answers and verdicts of one log in one step."""

from tasks.imports.results.formats.known import FORMATS
from tasks.imports.results.importing import import_results, refuse_no_log

__all__ = ["FORMATS", "import_results", "refuse_no_log"]
