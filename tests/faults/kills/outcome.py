"""What a run leaves behind, read for comparing."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TABLES = {
    "responses": "select response_id, status, text from responses order by all",
    "verdicts": "select verdict_id, status, value, explanation from verdicts order by all",
    # Not compared: when it was, what it cost, and what `aggregate` draws, which the undisturbed run leaves out.
    "leaderboard": """
        select * exclude (
            ci_low, ci_high, is_small, trials_mean, trials_ci_low, trials_ci_high, met_ci_low, met_ci_high,
            is_met_small, cost_usd, first_answered_at
        )
        from leaderboard order by all
    """,
}


def tables(warehouse: Path) -> dict[str, list[dict[str, Any]]]:
    """What has to be the same whatever happened on the way."""
    from warehouse import Warehouse

    with Warehouse(warehouse).reader() as reader:
        return {name: [_rounded(row) for row in reader.rows(query)] for name, query in TABLES.items()}


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """The last digits of a mean depend on the order in which rows were added up."""
    return {name: round(value, 12) if isinstance(value, float) else value for name, value in row.items()}


def recorded(warehouse: Path) -> Counter[str]:
    """How many answers the ledger has for each call, all its files together."""
    found: Counter[str] = Counter()
    for path in (warehouse / "ledger").glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            found.update(
                dict(connection.execute("select call_key, count(*) from calls where status = 'ok' group by 1"))
            )
    return found
