"""What a warehouse takes up on the disk."""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tasks.config.job import Job
from tasks.run.run_context import LEDGER
from warehouse import TABLES, Warehouse


@dataclass
class Used:
    """What lies under one head: a table's parts that count, the database, the ledger, or what is left over."""

    what: str
    n_files: int = 0
    n_bytes: int = 0


def disk_use(job: Job) -> list[Used]:
    """The files and bytes of a warehouse: each table, the ledger, the database, and everything else.

    Parts that compaction has put others in the place of are left over until they are deleted.
    """
    warehouse = Warehouse(job.warehouse)
    of_table = {part.path: f"table {table}" for table in TABLES for part in warehouse.store.standing(table)}
    used: dict[str, Used] = defaultdict(lambda: Used(""))
    for path in [Path(folder) / name for folder, _, names in os.walk(warehouse.root) for name in names]:
        what = of_table.get(path) or _head(path, warehouse)
        used[what].what = what
        used[what].n_files += 1
        used[what].n_bytes += _size(path)
    return sorted(used.values(), key=lambda each: (-each.n_bytes, each.what))


def _head(path: Path, warehouse: Warehouse) -> str:
    if path == warehouse.database:
        return "database"
    return LEDGER if (warehouse.root / LEDGER) in path.parents else "other"


def _size(path: Path) -> int:
    """The size of a file; 0 where it has gone since it was listed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
