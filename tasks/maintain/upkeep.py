"""Tidying a warehouse, removing single responses, and what it takes up on the disk.

Small files become large ones, and raw replies that were kept long enough go. Of a removed response, such as one that is
far too long, the cell is missing, and the next run fills it.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sql
from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.pruning import Pruned, forget, prune
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import DECIDED_STATUSES, TABLES, Reader, Warehouse, WarehouseError, refuse_other_version

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
        given: dict[str, Any] = {f"list_contains(?, {name})": list(values) for name, values in lists.items() if values}
        given |= {"vintage = ?": self.vintage} if self.vintage is not None else {}
        given |= {"chars_alnum > ?": self.longer_than} if self.longer_than is not None else {}
        return " and ".join(given), list(given.values())


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


_MANY_PARTS = 400
"""Parts from which on a night compacts: about a week of nights, and far fewer than slow a reader down."""
_DAY_S = 86_400.0


def tidy(job: Job, only_if_needed: bool = False) -> StageReport:
    """Compact the tables and prune the ledger, and say what came of it; what is read stays the same.

    Args:
        job: its `retention.replies_days` says which replies go; null: none.
        only_if_needed: compact only where there are many parts, as a night does.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses.
        PipelineError: the ledger cannot be opened or written.
    """
    report = StageReport("compact")
    warehouse = Warehouse(job.warehouse)
    n_parts = warehouse.n_parts()
    if only_if_needed and n_parts <= _MANY_PARTS:
        report.notes.append(f"{counted(n_parts, 'file')}, no need to merge")
    else:
        _compact(warehouse, report)
        forget_removed(job)  # what a removal that was killed left
    if job.settings.retention.replies_days is not None:
        _prune(job, warehouse, job.settings.retention.replies_days, report)
    return report


def _compact(warehouse: Warehouse, report: StageReport) -> None:
    done = warehouse.compact()
    report.rows = done.parts_before - done.parts_after
    sizes = f"{_mb(done.bytes_before)} to {_mb(done.bytes_after)}"
    report.notes.append(f"{done.parts_before} files merged into {done.parts_after} ({sizes})")
    sizes = f"{_mb(done.database_bytes_before)} to {_mb(done.database_bytes_after)}"
    report.notes.append(f"database rebuilt ({sizes})")


def _prune(job: Job, warehouse: Warehouse, days: int, report: StageReport) -> None:
    warehouse.publish()
    with warehouse.reader() as reader:
        pruned = prune(job.warehouse / LEDGER, time.time() - days * _DAY_S, lambda cells: _stored(reader, cells))
    report.notes.append(f"{pruned.entries} raw replies older than {days} days deleted ({_mb(pruned.freed_bytes)})")
    if pruned.is_in_use:
        report.notes.append("the ledger was not pruned, since a run is using it")


def _stored(reader: Reader, cells: Sequence[str]) -> Mapping[str, bool]:
    """Of some cells those that are rows, each with whether the row is decided."""
    parameters = {"cells": list(cells), "decided": list(DECIDED_STATUSES)}
    rows = reader.rows(sql.read("queries/maintain/stored_calls"), parameters)
    return {row["cell"]: row["is_decided"] for row in rows}


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"


def disk_use(job: Job) -> list[Row]:
    """The files and bytes of a warehouse: each table, the ledger, the database, and everything else.

    Parts that compaction has put others in the place of are left over until they are deleted.
    """
    warehouse = Warehouse(job.warehouse)
    heads = {part.path: f"table {table}" for table in TABLES for part in warehouse.store.standing(table)}
    heads[warehouse.database] = "database"
    used: dict[str, Row] = {}
    for path in [Path(folder) / name for folder, _, names in os.walk(warehouse.root) for name in names]:
        what = heads.get(path) or (LEDGER if (warehouse.root / LEDGER) in path.parents else "other")
        head = used.setdefault(what, {"what": what, "n_files": 0, "n_bytes": 0})
        head["n_files"] += 1
        with suppress(FileNotFoundError):  # it has gone since it was listed
            head["n_bytes"] += path.stat().st_size
    return sorted(used.values(), key=lambda each: (-each["n_bytes"], each["what"]))
