"""The spend of runs: sums of the ledger, which are stored in the table `spend`.

The costs of runs are computed by `run_costs` (`sql/marts/`) from the current sums, which include
killed and running runs.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

from tasks.config.job import Job
from tasks.llm.ledger.entries import SPEND_COLUMNS, SPEND_KEY
from tasks.llm.ledger.ledger import move_attempts, spend_in, unfinished_replies
from tasks.llm.ledger.opening import repair_if_damaged
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER
from warehouse import Row, Warehouse
from warehouse.files import note

_SpendKey = tuple[Any, ...]
_key_of = itemgetter(*SPEND_KEY)


def store_calls(job: Job) -> int:
    """Store what is new in the ledger, of all runs: spend and attempts. Return the number of new or
    changed rows of spend.

    The rows can be read after the next `publish`. If the ledger has fewer calls than a published
    row, because it was deleted or damaged, the published row stays.

    Raises:
        PipelineError: the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    published = _published_spend(warehouse)
    try:
        _store_attempts(job, warehouse)
        spend = _current_spend(job, published)
    except PipelineError:
        # The ledger may be damaged, so it is repaired; a second failure is raised.
        repair_ledger(job)
        _store_attempts(job, warehouse)
        spend = _current_spend(job, published)
    created_at = datetime.now(UTC)
    changed_rows = []
    for key, row in spend.items():
        if row != published.rows.get(key):
            changed_rows.append({**row, "created_at": created_at})
    if changed_rows:
        warehouse.write("spend", changed_rows)
    return len(changed_rows)


def _store_attempts(job: Job, warehouse: Warehouse) -> None:
    """Move the attempts from the ledger to the warehouse, unless another machine is writing."""

    def store(attempts: list[Row]) -> None:
        for attempt in attempts:
            attempt["finished_at"] = datetime.fromtimestamp(attempt.pop("finished_at_s"), UTC)
        warehouse.write("attempt_rows", attempts)

    if not warehouse.other_host():
        move_attempts(job.warehouse / LEDGER, store)


def repair_ledger(job: Job, *, verifies_calls: bool = False) -> None:
    """Repair the ledger if it is damaged and no run has it open; the command reports that, and ends
    with exit code 3.

    With `verifies_calls`, the checksum of every call is verified first.

    Raises:
        PipelineError: the ledger cannot be opened or written.
    """
    damage = repair_if_damaged(job.warehouse / LEDGER, verifies_calls=verifies_calls)
    if damage:
        note(damage)


class _PublishedSpend(NamedTuple):
    """The published rows of spend; those of `ended_runs` have all calls of their runs."""

    rows: Mapping[_SpendKey, Row]
    ended_runs: Collection[str]


def _published_spend(warehouse: Warehouse) -> _PublishedSpend:
    if not warehouse.database.exists():
        return _PublishedSpend({}, ())
    with warehouse.reader() as reader:
        rows = {_key_of(row): row for row in reader.select("spend", ", ".join(SPEND_COLUMNS))}
        ended_runs = reader.rows("select run_id from runs where outcome <> 'running'")
        return _PublishedSpend(rows, {row["run_id"] for row in ended_runs})


def _current_spend(job: Job, published: _PublishedSpend) -> dict[_SpendKey, Row]:
    """Return the ledger's rows of spend, and published ones that have more calls or that it lacks.

    Where damage made the ledger's cost unknown (None), a published row counts only if its run has
    ended. If another machine is writing, the ledger is not opened, because two machines that open
    one SQLite file damage it.
    """
    spend = {}
    if not Warehouse(job.warehouse).other_host():
        for row in spend_in(job.warehouse / LEDGER):
            if row["cost_usd"] is not None or row["run_id"] not in published.ended_runs:
                spend[_key_of(row)] = row
    for key, row in published.rows.items():
        ledger_row = spend.get(key)
        if ledger_row is None or (
            ledger_row["cost_usd"] is not None and row["calls"] > ledger_row["calls"]
        ):
            spend[key] = row
    return spend


def daily_spend(job: Job, since: datetime | None = None) -> list[Row]:
    """Return the spend of each day (UTC) and called model, latest day first.

    It includes discarded attempts, and the calls of running runs, because it comes from the ledger.
    If the ledger has less than is published, because a file is missing or rows came from another
    warehouse, the published spend is used. Days before that of `since` are left out.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    first_day = "" if since is None else since.astimezone(UTC).date().isoformat()
    return _cost_rows(job, "daily_spend", {"first_day": first_day})


def unpublished_replies(job: Job) -> Counter[str]:
    """Return how many replies of running and killed runs are in the ledger but not yet published,
    by called model.

    If another machine is writing, its ledger is not read.

    Raises:
        PipelineError: the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    if warehouse.other_host():
        return Counter()
    replies = unfinished_replies(job.warehouse / LEDGER, _published_spend(warehouse).ended_runs)
    with warehouse.reader() as reader:
        rows = reader.query("queries/maintain/published_cells", {"cells": list(replies)})
    published_cells = {row["cell"] for row in rows}
    return Counter(model for cell, model in replies.items() if cell not in published_cells)


def run_cost(job: Job, run_id: str) -> list[Row]:
    """Return the cost of a run's calls so far, by purpose and called model.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    return _cost_rows(job, "run_cost", {"run_id": run_id})


def run_total(job: Job, run_id: str) -> Row:
    """Return the numbers of calls and tokens of a run so far and their known cost, as columns of
    `runs`.

    The cost is None if no cost is known.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    (row,) = _cost_rows(job, "run_total", {"run_id": run_id})
    return row


def total_cost(job: Job, night: str | None = None) -> Row:
    """Return the calls of a job's run so far and their known cost, or those of all runs of a night
    (`n_runs`).

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    parameters = {"run_id": job.run_id, "night": night, "benchmark": job.benchmark}
    (row,) = _cost_rows(job, "total_cost", parameters)
    return row


def latest_runs(job: Job, since: datetime | None = None) -> list[Row]:
    """Return the latest 20 runs, or all since a moment; if a process ended without an outcome, its
    run is `killed`.

    Raises:
        WarehouseError: nothing is published.
        PipelineError: a file of the ledger cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    rows = _cost_rows(job, "runs", {"since": since, "n_most": 20 if since is None else None})
    for row in rows:
        if row["outcome"] == "running" and row["run_id"] not in warehouse.living_runs():
            row["outcome"] = "killed"
    return rows


def _cost_rows(job: Job, query_name: str, parameters: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a query on costs, computed from the current spend of all runs, including
    running ones.
    """
    warehouse = Warehouse(job.warehouse)
    spend = list(_current_spend(job, _published_spend(warehouse)).values())
    if not warehouse.database.exists():
        warehouse.publish()  # it is lost, or no run has published yet
    types = dict.fromkeys(SPEND_COLUMNS, "BIGINT") | dict.fromkeys(SPEND_KEY, "VARCHAR")
    types["cost_usd"] = "DOUBLE"
    rows = {"spend": json.dumps(spend), "structure": json.dumps([types])}
    with warehouse.reader() as reader:
        return reader.query(f"queries/maintain/{query_name}", {**rows, **parameters})
