"""What tables and columns mean, as the contracts and `sql/schema.yml` say it."""

from collections.abc import Sequence

import sql
from warehouse import COLUMNS, TABLES


def meaning_of_table(name: str) -> str:
    """What one row of a table or view is."""
    mart = sql.schema()["marts"].get(name)
    return str(mart["meaning"]) if mart else TABLES[name].meaning


def meaning_of_column(column: str, marts: Sequence[str]) -> str | None:
    """What a column means in the first of some tables that describes it, else everywhere; None if nothing is said."""
    described = sql.schema()["marts"]
    for name in marts:
        meaning = ((described.get(name) or {}).get("columns") or {}).get(column)
        if meaning is not None:
            return str(meaning)
    return COLUMNS[column][1] if column in COLUMNS else None
