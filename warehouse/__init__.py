"""The warehouse: contracts, immutable Parquet parts, and the published DuckDB file.

Only DuckDB, Polars and PyArrow are used here, and nothing of the stages or flows.
"""

from warehouse.database.losses import lines_on
from warehouse.database.reader import Reader
from warehouse.files.damage import take_notices
from warehouse.files.errors import WarehouseBusy, WarehouseError, WarehouseOutdated
from warehouse.warehouse import Compaction, Warehouse

__all__ = [
    "Compaction", "Reader", "Warehouse", "WarehouseBusy", "WarehouseError", "WarehouseOutdated", "lines_on",
    "take_notices",
]  # fmt: skip
