"""Tidying a warehouse: small files become large ones, and raw replies that were kept long enough go."""

import time
from collections.abc import Mapping, Sequence

import sql
from tasks.config.job import Job
from tasks.llm import prune
from tasks.maintain.removal import forget_removed
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import DECIDED_STATUSES, Reader, Warehouse

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
    before, after = (sum(getattr(table, name) for table in done.tables) for name in ("bytes_before", "bytes_after"))
    report.rows = done.parts_before - done.parts_after
    report.notes.append(f"{done.parts_before} files merged into {done.parts_after} ({_mb(before)} to {_mb(after)})")
    if done.is_rebuilt:
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
    rows = reader.rows(sql.read("questions/maintain/stored_calls"), parameters)
    return {row["cell"]: row["is_decided"] for row in rows}


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"
