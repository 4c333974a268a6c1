"""What was spent, from the ledger's sums into the table `spend`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tasks.config.job import Job
from tasks.llm import SPEND_COLUMNS, SPEND_KEY, mend, spend_in
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER
from warehouse import Warehouse

Row = dict[str, Any]
_Key = tuple[Any, ...]
FIGURES = SPEND_COLUMNS[len(SPEND_KEY) :]


def store_spend(job: Job) -> int:
    """Write the rows of all runs in the ledger, killed ones too, that are new or other than published; how many.

    They are read after the next `publish`. Where the ledger knows less than what is published, since it was deleted or
    damaged, the published row stands.

    Raises:
        PipelineError: the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    published = _published(warehouse)
    try:
        known = _known_by_ledger(job, published)
    except PipelineError:  # damaged, perhaps: what cannot be mended either is reported now
        mend(job.warehouse / LEDGER)
        known = _known_by_ledger(job, published)
    changed = [
        {**row, "created_at": datetime.now(UTC)}
        for key, row in known.items()
        if key not in published or any(row[name] != published[key][name] for name in FIGURES)
    ]
    if changed:
        warehouse.write("spend", changed)
    return len(changed)


def spend_of_all(job: Job) -> list[Row]:
    """The spend of all runs, also of those that go on: what the ledger knows, and beside it what is published.

    Raises:
        PipelineError: the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    published = _published(warehouse) if warehouse.database.exists() else {}
    return list((published | _known_by_ledger(job, published)).values())


def _published(warehouse: Warehouse) -> dict[_Key, Row]:
    with warehouse.reader() as reader:
        return {_key(row): row for row in reader.rows("select * from spend")}


def _known_by_ledger(job: Job, published: Mapping[_Key, Row]) -> dict[_Key, Row]:
    """The rows of the ledger. Where it knows less than is published, that one stands.

    Where another machine writes, its ledger is left alone: two machines that open one SQLite file damage it.
    """
    if Warehouse(job.warehouse).elsewhere():
        return {}
    rows = {_key(row): row for row in spend_in(job.warehouse / LEDGER)}
    return {key: row for key, row in rows.items() if key not in published or row["calls"] >= published[key]["calls"]}


def _key(row: Row) -> _Key:
    return tuple(row[name] for name in SPEND_KEY)
