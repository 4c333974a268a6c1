"""The warehouse: contracts, immutable Parquet parts, and the published DuckDB file.

Only DuckDB, PyArrow and `sql/` are used here, and nothing of the stages or flows.
"""

from warehouse.columns import COLUMNS
from warehouse.errors import (
    WarehouseBusy,
    WarehouseError,
    WarehouseOutdated,
    advice_if_writable,
    existing_folder,
    nothing_in,
)
from warehouse.files import pop_notices, sync, write_atomically
from warehouse.locks import file_lock, refuse_if_lost, why_lost
from warehouse.parts import DATABASE, FILE, lines_on, refuse_other_version
from warehouse.reader import Reader, Row, quoted, reporting_damage
from warehouse.samples import sample_path
from warehouse.tables import DECIDED_STATUSES, TABLES
from warehouse.warehouse import Warehouse, content_of, other_content

__all__ = [
    "COLUMNS",
    "DATABASE",
    "DECIDED_STATUSES",
    "FILE",
    "TABLES",
    "Reader",
    "Row",
    "Warehouse",
    "WarehouseBusy",
    "WarehouseError",
    "WarehouseOutdated",
    "advice_if_writable",
    "content_of",
    "existing_folder",
    "file_lock",
    "lines_on",
    "nothing_in",
    "other_content",
    "pop_notices",
    "quoted",
    "refuse_if_lost",
    "refuse_other_version",
    "reporting_damage",
    "sample_path",
    "sync",
    "why_lost",
    "write_atomically",
]
