"""Removing single responses, such as one that is far too long: the cell is missing then, and the next run fills it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm import Pruned, forget
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import Warehouse, WarehouseError, refuse_other_version

Row = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """Which responses are meant: those that fit all that is given. `longer_than` counts letters and digits."""

    response_ids: Sequence[str] = ()
    models: Sequence[str] = ()
    task_ids: Sequence[str] = ()
    trials: Sequence[int] = ()
    vintage: str | None = None
    longer_than: int | None = None

    @property
    def condition(self) -> tuple[str, list[Any]]:
        """The condition on the columns of `responses`, and its values; empty where nothing is given."""
        lists = {
            "response_id": self.response_ids, "model": self.models, "task_id": self.task_ids, "trial": self.trials,
        }  # fmt: skip
        given = [(f"list_contains(?, {column})", list(values)) for column, values in lists.items() if values]
        if self.vintage is not None:
            given.append(("vintage = ?", self.vintage))  # type: ignore[arg-type]
        if self.longer_than is not None:
            given.append(("chars_alnum > ?", self.longer_than))  # type: ignore[arg-type]
        return " and ".join(text for text, _ in given), [value for _, value in given]


def chosen(job: Job, choice: Choice) -> list[Row]:
    """The stored responses that are meant, the longest first; no text is read.

    Raises:
        UsageError: nothing says which, or a response that is named is not here.
        WarehouseError: a part cannot be read.
    """
    condition, values = choice.condition
    if not condition:
        raise UsageError("name the responses to remove: their ids, or --model, --task, --trial, --longer-than")
    rows = Warehouse(job.warehouse).responses_where(condition, values)
    missing = sorted(set(choice.response_ids) - {row["response_id"] for row in rows})
    if missing:
        raise UsageError(f"{missing[0]}: no stored response has this id and matches the other options")
    return rows


def forget_removed(job: Job) -> Pruned:
    """Delete the replies in the ledger that removed responses were made of.

    Raises:
        PipelineError: the ledger cannot be opened or written.
    """
    with Warehouse(job.warehouse).reader() as reader:
        removed = {row["response_id"]: row["created_at"].timestamp() for row in reader.rows("from removals")}
    return forget(job.warehouse / LEDGER, removed) if removed else Pruned()


def remove(job: Job, choice: Choice, reason: str) -> StageReport:
    """Remove responses with all verdicts on them, for good; the next run samples the cells by new calls.

    Raises:
        UsageError: nothing says which, or a response that is named is not here.
        WarehouseBusy: a run is at work on the warehouse.
        WarehouseError: a part cannot be read, or the disk refuses.
        PipelineError: the ledger cannot be written.
    """
    warehouse = Warehouse(job.warehouse)
    if refuse_other_version(warehouse.root) is None:
        chosen(job, choice)  # an id that is not there is the mistake to name
        raise UsageError(f"{warehouse.root}: nothing is stored there, so nothing can be removed")
    with warehouse.alone(notice):
        if damage := warehouse.damage():
            raise WarehouseError(f"{damage[0]}; run `prbench aggregate` to repair it, then remove again")
        rows = chosen(job, choice)
        moment = datetime.now(UTC)
        warehouse.write("removals", [
            {"response_id": row["response_id"], "reason": reason, "run_id": job.run_id, "created_at": moment}
            for row in rows
        ])  # fmt: skip
        # From here on they are gone; what follows is done again by the next compaction if it is cut off.
        warehouse.clean()
        warehouse.publish()
        freed = forget_removed(job)
    report = StageReport("remove", rows=len(rows))
    report.notes.append(
        f"{counted(len(rows), 'response')} removed, with {counted(freed.entries, 'reply', 'replies')} in the ledger"
    )
    report.notes.append("the next run samples them again; `prbench compact` frees their disk space after an hour")
    return report
