"""Report: the warehouse as a static site, from the leaderboard down to one verdict."""

from tasks.report.build import Written, build

__all__ = ["Written", "build"]
