"""Aggregate: scores and leaderboards are SQL, built at every publishing; here what takes resampling is added."""

from tasks.aggregate.intervals import stale_intervals
from tasks.reports import StageReport
from tasks.settings import Job
from warehouse import Warehouse

__all__ = ["aggregate"]


def aggregate(job: Job) -> StageReport:
    """Publish what is stored and give every leaderboard figure whose values are new its intervals."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        intervals = stale_intervals(reader)
    warehouse.write("intervals", intervals)
    warehouse.publish()
    with warehouse.reader() as reader:
        n_rows = reader.value("select count(*) from leaderboard where benchmark = ?", [job.settings.benchmark])
    note = f"{n_rows} leaderboard rows, {len(intervals)} intervals drawn"
    return StageReport("aggregate", rows=n_rows, notes=[note])
