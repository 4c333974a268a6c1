"""Report: the warehouse as a static site, from the leaderboard down to one verdict."""

from tasks.report.build import Written, build
from tasks.report.content.addresses import task_address
from tasks.report.content.edition import labelled_judgings
from tasks.report.pages.served import COMPARE, LIVE
from tasks.report.rendering.assets import ASSETS
from tasks.report.rendering.site import only_writer, refuse_other, report_files
from tasks.report.served import served_page

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
