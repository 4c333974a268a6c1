"""Every stored table with its columns and key, in a module for its subject.

`sql/schema.yml` describes the columns that marts add.
"""

from warehouse.tables import capabilities, comparisons, data, labels, results, runs
from warehouse.tables.table import OF_SOME_JUDGES, StoredTable

__all__ = ["DECIDED_STATUSES", "OF_SOME_JUDGES", "TABLES", "StoredTable"]

TABLES = {
    table.name: table
    for table in (
        # Retractions and removals are loaded first, as they affect all others; responses before the
        # rows about them.
        *data.TABLES,
        *results.TABLES,
        *capabilities.TABLES,
        *comparisons.TABLES,
        *labels.TABLES,
        *runs.TABLES,
    )
}
"""Name -> table."""
DECIDED_STATUSES = ("ok", "met", "partial", "unmet")
"""The statuses of rows that later ones do not replace, in tables that keep `decided` rows."""
