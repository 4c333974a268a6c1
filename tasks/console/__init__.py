"""Text for terminals and logs."""

from tasks.console.log_records import rewrite_log_records
from tasks.console.printing import VisibleConsole
from tasks.console.progress import Tally, advance, notice, progress
from tasks.console.terminal import exact, guard_log_records, shown_visibly

__all__ = [
    "Tally",
    "VisibleConsole",
    "advance",
    "exact",
    "guard_log_records",
    "notice",
    "progress",
    "rewrite_log_records",
    "shown_visibly",
]
