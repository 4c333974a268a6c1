"""What was spent, from the ledger's sums into the table `spend`; and what runs came to.

Killed runs and those that go on are included. It is asked of `run_costs` (`sql/marts/`), over the sums of the ledger as
they stand now.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.llm.ledger.entries import SPEND_COLUMNS, SPEND_KEY
from tasks.llm.ledger.files import mend
from tasks.llm.ledger.ledger import spend_in
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


MOST_RUNS = 20
_TYPES = dict.fromkeys(SPEND_KEY, "VARCHAR") | {"cost_usd": "DOUBLE"}
_STRUCTURE = json.dumps([{name: _TYPES.get(name, "BIGINT") for name in SPEND_COLUMNS}])


def spent(job: Job, since: datetime | None = None) -> list[Row]:
    """The spend of each day (UTC) and model that was called, latest day first: all attempts, discarded ones included.

    The ledger is asked, so what goes on now is in it; where it knows less than is published, because a file of it is
    gone or the rows came from another warehouse, what is published counts. `since` takes whole days.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    first_day = "" if since is None else since.astimezone(UTC).date().isoformat()
    return _asked(job, "daily_spend", {"first_day": first_day})


def run_cost(job: Job, run_id: str) -> list[Row]:
    """What a run's calls cost until now, by what they were made for and the model that was called.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    return _asked(job, "run_cost", {"run_id": run_id})


def total_cost_usd(job: Job, run_id: str) -> float | None:
    """What a run's calls cost in all until now (US dollars), as far as it is known; None where nothing of it is.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    (row,) = _asked(job, "total_cost", {"run_id": run_id})
    cost_usd: float | None = row["cost_usd"]
    return cost_usd


def latest_runs(job: Job, since: datetime | None = None) -> list[Row]:
    """The latest runs, or all since a moment; one whose process is no more is `killed`.

    Raises:
        WarehouseError: nothing is published.
        PipelineError: a file of the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    rows = _asked(job, "runs", {"since": since, "n_most": MOST_RUNS if since is None else None})
    for row in rows:
        if row["outcome"] == "running" and not warehouse.is_living(row["run_id"]):
            row["outcome"] = "killed"
    return rows


def _asked(job: Job, question: str, given: Mapping[str, Any]) -> list[Row]:
    """The rows of a question about `run_costs`, which stands on what the ledger knows now."""
    spend = [{name: row[name] for name in SPEND_COLUMNS} for row in spend_of_all(job)]
    warehouse = Warehouse(job.warehouse)
    if spend and not warehouse.database.exists():
        warehouse.publish()  # it is lost, or nothing was stored yet when the run that called was killed
    with warehouse.reader() as reader:
        query = sql.read(f"queries/maintain/{question}")
        return reader.rows(query, {"spend": json.dumps(spend), "structure": _STRUCTURE, **given})
