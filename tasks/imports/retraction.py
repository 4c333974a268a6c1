"""Taking an import back, and bringing it back in: its rows stay in the parts, and what is published leaves them out."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import sql
from tasks.config.settings import Job
from tasks.rules.errors import UsageError
from tasks.run.stage_report import StageReport
from warehouse import Warehouse

_NAMED = 5
_KNOWN = """
    select import_batch from (
        select import_batch, created_at from responses where import_batch is not null
        union all
        select import_batch, created_at from verdicts where import_batch is not null
    )
    group by import_batch
    order by max(created_at) desc
"""


class Batch(NamedTuple):
    """What of an imported file stands: its responses, its verdicts and those on its responses."""

    n_responses: int
    n_verdicts: int
    is_retracted: bool

    def __str__(self) -> str:
        return f"{self.n_responses} responses and {self.n_verdicts} verdicts"


def batch_in(warehouse: Warehouse, batch: str) -> Batch:
    """What is published of an imported file."""
    with warehouse.reader() as reader:
        return Batch(**reader.rows(sql.read("questions/import_batch"), {"batch": batch})[0])


def retraction_row(job: Job, batch: str, *, is_retracted: bool) -> dict[str, Any]:
    """The row that says whether a batch counts."""
    return {
        "import_batch": batch, "is_retracted": is_retracted, "run_id": job.run_id, "created_at": datetime.now(UTC),
    }  # fmt: skip


def retract(job: Job, batch: str) -> StageReport:
    """Take an import back: its responses with all verdicts on them, and its verdicts.

    Nothing is deleted. Importing the same file again brings all of it back, verdicts that a judge made included.

    Raises:
        UsageError: there is no such batch.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    before = batch_in(warehouse, batch)
    if before.is_retracted:
        return StageReport("import", notes=[f"batch {batch} is already taken back"])
    if not before.n_responses and not before.n_verdicts:
        with warehouse.reader() as reader:
            known = [row["import_batch"] for row in reader.rows(_KNOWN)]
        said = f"there are {', '.join(known[:_NAMED])}" if known else "nothing was imported"
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        raise UsageError(f"--retract {batch}: is not an imported batch; {said}{more} (column import_batch)")
    warehouse.write("retractions", [retraction_row(job, batch, is_retracted=True)])
    warehouse.publish()
    note = f"{before} taken back (batch {batch}); importing the same file again restores them"
    return StageReport("import", rows=before.n_responses + before.n_verdicts, notes=[note])
