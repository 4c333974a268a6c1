"""Merging of small files, deletion of old raw replies, and disk use."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from tasks.config.job import Job
from tasks.llm.ledger.pruning import prune
from tasks.maintain.removal import forget_removed
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import DECIDED_STATUSES, Reader, Row, Warehouse

MANY_PARTS = 400
"""A night compacts if there are more parts than this, about a week of nights; readers slow down
only at many more.
"""


def tidy(job: Job, only_if_needed: bool = False) -> StageReport:
    """Compact the tables, prune the ledger, and report on both; results stay the same.

    Args:
        job: its `retention.replies_days` is the age at which replies are deleted; null keeps all.
        only_if_needed: compact only if there are many parts, as nights do.
    """
    report = StageReport("compact")
    warehouse = Warehouse(job.warehouse)
    sizes_before = warehouse.part_sizes()
    if only_if_needed and len(sizes_before) <= MANY_PARTS:
        report.notes.append(f"{counted(len(sizes_before), 'file')}, no need to merge")
    else:
        warehouse.compact()
        sizes_after = warehouse.part_sizes()
        report.rows = len(sizes_before) - len(sizes_after)
        report.notes += [
            f"{len(sizes_before)} files merged into {len(sizes_after)}"
            f" ({_megabytes(sum(sizes_before), sum(sizes_after))})",
            f"database rebuilt ({_megabytes(warehouse.database.stat().st_size)})",
        ]
        forget_removed(job)  # finishes a removal that was killed
    days = job.settings.retention.replies_days
    if days is not None:
        warehouse.publish()
        with warehouse.reader() as reader:
            oldest_s = time.time() - days * 86_400
            pruned = prune(job.warehouse / LEDGER, oldest_s, partial(_decisions_by_cell, reader))
        report.notes.append(
            f"{pruned.entries} raw replies older than {days} days deleted"
            f" ({_megabytes(pruned.freed_bytes)})"
        )
        if pruned.is_in_use:
            report.notes.append("the ledger was not pruned, because a run is using it")
    return report


def _decisions_by_cell(reader: Reader, cells: Sequence[str]) -> Mapping[str, bool]:
    """Return each of the cells that has a stored row -> whether that row is decided."""
    parameters = {"cells": list(cells), "decided": list(DECIDED_STATUSES)}
    rows = reader.query("queries/maintain/stored_calls", parameters)
    return {row["cell"]: row["is_decided"] for row in rows}


def _megabytes(*n_bytes: int) -> str:
    return " to ".join(f"{size / 1e6:.1f} MB" for size in n_bytes)


def disk_use(job: Job) -> list[Row]:
    """Return the files and bytes of a warehouse: each table, the ledger, the database, and
    everything else.

    Parts that compaction replaced count as other files until they are deleted.
    """
    from tasks.bundles.stores import Folder  # fsspec takes long to import

    warehouse = Warehouse(job.warehouse)
    users = {warehouse.database: "database"}
    for table, parts in warehouse.store.all_current_parts().items():
        users |= dict.fromkeys(parts, f"table {table}")
    sizes = defaultdict(list)
    for name, n_bytes in Folder(warehouse.root).files().items():
        other_user = LEDGER if name.startswith(f"{LEDGER}/") else "other"
        sizes[users.get(warehouse.root / name, other_user)].append(n_bytes)
    rows = []
    for user, file_sizes in sizes.items():
        rows.append({"what": user, "n_files": len(file_sizes), "n_bytes": sum(file_sizes)})
    return sorted(rows, key=lambda row: (-row["n_bytes"], row["what"]))
