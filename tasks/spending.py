"""What was spent, from the ledger's sums into the table `spend`."""

from datetime import UTC, datetime
from typing import Any

from tasks.desk import LEDGER
from tasks.llm.spend import SPEND_COLUMNS, SPEND_KEY, spend_in
from tasks.settings import Job
from warehouse import Warehouse

_FIGURES = SPEND_COLUMNS[len(SPEND_KEY) :]


def store_spend(job: Job) -> int:
    """Write the rows of all runs in the ledger, killed ones too, that are new or other than published; how many.

    They are read after the next `publish`. Where the ledger knows less than what is published, because a file of it is
    gone, the published row stands.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        published = {_key(row): row for row in reader.rows("select * from spend")}
    now = datetime.now(UTC)
    changed = [
        {**row, "created_at": now}
        for row in spend_in(job.warehouse / LEDGER)
        if _is_news(row, published.get(_key(row)))
    ]
    if changed:
        warehouse.write("spend", changed)
    return len(changed)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in SPEND_KEY)


def _is_news(row: dict[str, Any], published: dict[str, Any] | None) -> bool:
    if published is None:
        return True
    return row["calls"] >= published["calls"] and any(row[name] != published[name] for name in _FIGURES)
