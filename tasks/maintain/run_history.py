"""What runs came to: what was spent on which day, and the latest runs, those that go on or were killed included.

All of it is asked of `run_costs` (`sql/marts/`), over the sums of the ledger as they stand now.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.llm import SPEND_COLUMNS, SPEND_KEY
from tasks.maintain.spend import Row, spend_of_all
from warehouse import Warehouse

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
    return _asked(job, "spend", {"first_day": first_day})


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
    steps = {
        "spend": sql.read("questions/maintain/current_spend"),
        "run_costs": sql.read("marts/costs/run_costs"),
        "run_totals": sql.read("staging/costs/run_totals"),
    }
    query = sql.with_steps(sql.read(f"questions/maintain/{question}"), steps)
    spend = [{name: row[name] for name in SPEND_COLUMNS} for row in spend_of_all(job)]
    warehouse = Warehouse(job.warehouse)
    if spend and not warehouse.database.exists():
        warehouse.publish()  # it is lost, or nothing was stored yet when the run that called was killed
    with warehouse.reader() as reader:
        return reader.rows(query, {"spend": json.dumps(spend), "structure": _STRUCTURE, **given})
