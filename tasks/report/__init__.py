"""Report: the warehouse as a static site, from the leaderboard down to one verdict."""

from tasks.report.build import Written, build, served_page
from tasks.report.content.edition import labelled_judgings, task_address
from tasks.report.pages import COMPARE, LIVE
from tasks.report.rendering.site import ASSETS, only_writer, refuse_other, report_files

__all__ = [
    "ASSETS",
    "COMPARE",
    "LIVE",
    "Written",
    "build",
    "labelled_judgings",
    "only_writer",
    "refuse_other",
    "report_files",
    "served_page",
    "task_address",
]
