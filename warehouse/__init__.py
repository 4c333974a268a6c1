"""The warehouse: contracts, immutable Parquet parts, and the published DuckDB file.

Only DuckDB, Polars and PyArrow are used here, and nothing of the stages or flows.
"""

from warehouse.damage import take_notices
from warehouse.errors import WarehouseBusy, WarehouseError, WarehouseOutdated
from warehouse.losses import lines_on
from warehouse.reader import Reader
from warehouse.warehouse import Compaction, Warehouse

__all__ = [
    "Compaction", "Reader", "Warehouse", "WarehouseBusy", "WarehouseError", "WarehouseOutdated", "lines_on",
    "take_notices",
]  # fmt: skip
