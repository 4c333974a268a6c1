"""Text for terminals and logs. `printing` is imported by itself: it needs Rich, which `--help` does not wait for."""

from tasks.console.log_records import rewrite_log_records
from tasks.console.progress import Tally, advance, notice, progress
from tasks.console.terminal import exact, guard_log_records, shown_visibly

__all__ = [
    "Tally",
    "advance",
    "exact",
    "guard_log_records",
    "notice",
    "progress",
    "rewrite_log_records",
    "shown_visibly",
]
