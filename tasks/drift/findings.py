"""Which judges decide otherwise than they did."""

import sql
from tasks.config.job import Job
from tasks.drift.sets import control_sets
from tasks.rules.statistics.control import Drifted
from tasks.run.missing_work import wanted_tasks
from warehouse import Warehouse


def drifted(job: Job) -> list[Drifted]:
    """The configured judges that are out of control in this night; earlier nights are in the view `judge_drift`."""
    if job.night is None:
        return []
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        sets = [control_set.set_id for control_set in control_sets(job, wanted, reader) if control_set.set_id]
        rows = reader.rows(sql.read("questions/drift/drifted_judges"), {"night": job.night, "sets": sets})
    return [Drifted(**row) for row in rows]
