"""Drill-down: from a list of tasks to one verdict, from data that the pages load when it is asked for."""

from tasks.report.drilldown.pages import NAVIGATED
from tasks.report.drilldown.writing import write_drilldown

__all__ = ["NAVIGATED", "write_drilldown"]
