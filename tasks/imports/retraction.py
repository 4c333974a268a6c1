"""Retracting an import and restoring it: its rows stay in the parts, but are not published."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import sql
from tasks.config.job import Job
from tasks.rules.errors import UsageError
from tasks.run.writing import StageReport
from warehouse import Warehouse, refuse_other_version

_NAMED = 5


class Batch(NamedTuple):
    """The published rows of an imported file: its responses, its verdicts and those on its responses, its reviews."""

    n_responses: int
    n_verdicts: int
    n_reviews: int
    is_retracted: bool

    @property
    def n_rows(self) -> int:
        """How many rows there are in all."""
        return self.n_responses + self.n_verdicts + self.n_reviews

    def __str__(self) -> str:
        if self.n_reviews:
            return f"{self.n_reviews} reviews"
        return f"{self.n_responses} responses and {self.n_verdicts} verdicts"


def batch_in(warehouse: Warehouse, batch: str) -> Batch:
    """The published rows of an imported file."""
    with warehouse.reader() as reader:
        return Batch(**reader.rows(sql.read("questions/imports/batch"), {"batch": batch})[0])


def retraction_row(job: Job, batch: str, *, is_retracted: bool) -> dict[str, Any]:
    """The row that says whether a batch counts."""
    return {
        "import_batch": batch, "is_retracted": is_retracted, "run_id": job.run_id, "created_at": datetime.now(UTC),
    }  # fmt: skip


def refuse_retraction(job: Job, batch: str) -> None:
    """Refuse to retract from a warehouse in which nothing was ever stored, before one is made.

    Raises:
        UsageError: it is one.
    """
    if refuse_other_version(job.warehouse) is None:
        raise UsageError(f"--retract {batch}: no such batch; nothing is stored in {job.warehouse}")


def retract(job: Job, batch: str) -> StageReport:
    """Retract an import: its responses with all verdicts on them, and its verdicts.

    Nothing is deleted. Importing the same file again restores all of it, with the verdicts that a judge made.

    Raises:
        UsageError: there is no such batch.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    before = batch_in(warehouse, batch)
    if before.is_retracted:
        return StageReport("import", notes=[f"batch {batch} is already retracted"])
    if not before.n_rows:
        with warehouse.reader() as reader:
            known = [row["import_batch"] for row in reader.rows(sql.read("questions/imports/batches"))]
        said = f"known batches: {', '.join(known[:_NAMED])}" if known else "nothing was imported"
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        raise UsageError(f"--retract {batch}: no such batch; {said}{more} (column import_batch)")
    warehouse.write("retractions", [retraction_row(job, batch, is_retracted=True)])
    warehouse.publish()
    note = f"{before} retracted (batch {batch}); import the same file again to restore them"
    return StageReport("import", rows=before.n_rows, notes=[note])
