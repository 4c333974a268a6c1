"""The warehouse: contracts, immutable Parquet parts, and the published DuckDB file.

Only DuckDB, Polars and PyArrow are used here, and nothing of the stages or flows.
"""

from warehouse.contracts.columns import COLUMNS
from warehouse.contracts.tables import DECIDED_STATUSES, TABLES, Table
from warehouse.database.derivation import Derivation
from warehouse.database.losses import lines_on
from warehouse.database.reader import DATABASE, Reader, reporting_damage
from warehouse.files.atomic import sync, write_atomically
from warehouse.files.damage import Notice, is_named_after, take_notices
from warehouse.files.errors import (
    WarehouseBusy,
    WarehouseError,
    WarehouseOutdated,
    nothing_in,
    refusal_of_disk,
)
from warehouse.files.locks import file_lock
from warehouse.files.one_machine import refuse_if_lost
from warehouse.parts.compaction import Compaction
from warehouse.parts.current_rows import is_removed, rests_on_response
from warehouse.parts.engine import quoted
from warehouse.parts.store import DAMAGED
from warehouse.parts.version import FILE, refuse_other_version
from warehouse.samples import sample_path
from warehouse.warehouse import Warehouse, content_of, other_content

__all__ = [
    "COLUMNS",
    "DAMAGED",
    "DATABASE",
    "DECIDED_STATUSES",
    "FILE",
    "TABLES",
    "Compaction",
    "Derivation",
    "Notice",
    "Reader",
    "Table",
    "Warehouse",
    "WarehouseBusy",
    "WarehouseError",
    "WarehouseOutdated",
    "content_of",
    "file_lock",
    "is_named_after",
    "is_removed",
    "lines_on",
    "nothing_in",
    "other_content",
    "quoted",
    "refusal_of_disk",
    "refuse_if_lost",
    "refuse_other_version",
    "reporting_damage",
    "rests_on_response",
    "sample_path",
    "sync",
    "take_notices",
    "write_atomically",
]
