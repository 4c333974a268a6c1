"""Upkeep of a warehouse: spend, compaction, removal of single responses, and disk use.

The sums of the ledger are stored in the table `spend`. The costs of runs are computed by
`run_costs` (`sql/marts/`) from the current sums, which include killed and running runs.

Compaction merges small files and deletes old raw replies. A response that is removed (for example
because it is far too long) is missing, so the next run samples it again.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.entries import SPEND_COLUMNS, SPEND_KEY
from tasks.llm.ledger.ledger import move_attempts, spend_in, unfinished_replies
from tasks.llm.ledger.opening import mend
from tasks.llm.ledger.pruning import Pruned, forget, prune
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import DECIDED_STATUSES, Reader, Row, Warehouse, WarehouseError, refuse_other_version
from warehouse.compaction import responses_where
from warehouse.files import note

_SpendKey = tuple[Any, ...]
_key_of = itemgetter(*SPEND_KEY)


def store_calls(job: Job) -> int:
    """Store the new spend and attempts in the ledger, of all runs; return the rows of spend.

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
    damage = mend(job.warehouse / LEDGER, verifies_calls=verifies_calls)
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
        in_ledger = spend.get(key)
        if in_ledger is None or (
            in_ledger["cost_usd"] is not None and row["calls"] > in_ledger["calls"]
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


class ResponseChoice(NamedTuple):
    """A choice of responses: those that meet all given conditions.

    `longer_than` counts letters and digits.
    """

    response_ids: Sequence[str] = ()
    models: Sequence[str] = ()
    task_ids: Sequence[str] = ()
    trials: Sequence[int] = ()
    vintage: str | None = None
    longer_than: int | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """Conditions in SQL on the columns of `responses` -> their values; empty if nothing is
        given.
        """
        values = {
            "list_contains(?, response_id)": list(self.response_ids) or None,
            "list_contains(?, model)": list(self.models) or None,
            "list_contains(?, task_id)": list(self.task_ids) or None,
            "list_contains(?, trial)": list(self.trials) or None,
            "vintage = ?": self.vintage,
            "chars_alnum > ?": self.longer_than,
        }
        return {condition: value for condition, value in values.items() if value is not None}


def chosen_responses(job: Job, choice: ResponseChoice) -> list[Row]:
    """Return the chosen responses, the longest first, without reading texts.

    Raises:
        UsageError: no condition is given, or a named response does not exist.
        WarehouseError: a part cannot be read.
    """
    if not choice.conditions:
        raise UsageError(
            "name the responses to remove: their ids, or --model, --task, --trial, --vintage,"
            " --longer-than"
        )
    values = list(choice.conditions.values())
    rows = responses_where(Warehouse(job.warehouse).store, " and ".join(choice.conditions), values)
    missing_ids = set(choice.response_ids) - {row["response_id"] for row in rows}
    if missing_ids:
        raise UsageError(
            f"{min(missing_ids)}: no stored response has this id and matches the other options"
        )
    return rows


def forget_removed(job: Job) -> Pruned:
    """Delete the replies in the ledger that belong to removed responses.

    Raises:
        PipelineError: the ledger cannot be opened or written.
    """
    with Warehouse(job.warehouse).reader() as reader:
        removed = {
            row["response_id"]: row["created_at"].timestamp()
            for row in reader.rows("from removals")
        }
    return forget(job.warehouse / LEDGER, removed) if removed else Pruned()


def remove(job: Job, choice: ResponseChoice, reason: str) -> StageReport:
    """Remove responses permanently, with all verdicts on them; the next run samples them again by
    new calls.

    Raises:
        UsageError: no condition is given, or a named response does not exist.
        WarehouseBusy: a run is in progress on the warehouse.
        WarehouseError: a part cannot be read, or the disk cannot be written.
        PipelineError: the ledger cannot be written.
    """
    warehouse = Warehouse(job.warehouse)
    if refuse_other_version(warehouse.root) is None:  # there is no warehouse
        chosen_responses(job, choice)  # raises an error about an unknown id first
        raise UsageError(f"{warehouse.root}: no response is stored there, so none can be removed")
    with warehouse.alone(notice):
        damage = warehouse.damage()
        if damage:
            raise WarehouseError(
                f"{damage[0]}; run `prbench aggregate` to repair it, then remove again"
            )
        rows = chosen_responses(job, choice)
        columns = {"reason": reason, "run_id": job.run_id, "created_at": datetime.now(UTC)}
        warehouse.write(
            "removals", [{"response_id": row["response_id"], **columns} for row in rows]
        )
        # From here on they count as removed; after a kill, the next compaction does the rest.
        warehouse.clean()
        warehouse.publish()
        freed = forget_removed(job)
    n_replies = counted(freed.entries, "reply", "replies")
    summary = f"{counted(len(rows), 'response')} removed, with {n_replies} in the ledger"
    return StageReport("remove", len(rows), notes=[summary, "the next run samples them again"])


MANY_PARTS = 400
"""A night compacts if there are more parts than this, about a week of nights; readers slow down
only at many more.
"""


def tidy(job: Job, only_if_needed: bool = False) -> StageReport:
    """Compact the tables, prune the ledger, and report on both; results stay the same.

    Args:
        job: its `retention.replies_days` is the age at which replies are deleted; null keeps all.
        only_if_needed: compact only if there are many parts, as nights do.
    """
    report = StageReport("compact")
    warehouse = Warehouse(job.warehouse)
    sizes_before = warehouse.part_sizes()
    if only_if_needed and len(sizes_before) <= MANY_PARTS:
        report.notes.append(f"{counted(len(sizes_before), 'file')}, no need to merge")
    else:
        warehouse.compact()
        sizes_after = warehouse.part_sizes()
        report.rows = len(sizes_before) - len(sizes_after)
        report.notes += [
            f"{len(sizes_before)} files merged into {len(sizes_after)}"
            f" ({_megabytes(sum(sizes_before), sum(sizes_after))})",
            f"database rebuilt ({_megabytes(warehouse.database.stat().st_size)})",
        ]
        forget_removed(job)  # finishes a removal that was killed
    days = job.settings.retention.replies_days
    if days is not None:
        warehouse.publish()
        with warehouse.reader() as reader:
            oldest_s = time.time() - days * 86_400
            pruned = prune(job.warehouse / LEDGER, oldest_s, partial(_is_decided_by_call, reader))
        report.notes.append(
            f"{pruned.entries} raw replies older than {days} days deleted"
            f" ({_megabytes(pruned.freed_bytes)})"
        )
        if pruned.is_in_use:
            report.notes.append("the ledger was not pruned, because a run is using it")
    return report


def _is_decided_by_call(reader: Reader, cells: Sequence[str]) -> Mapping[str, bool]:
    """Return the calls (`cells`) with a stored row -> whether this row is decided."""
    parameters = {"cells": list(cells), "decided": list(DECIDED_STATUSES)}
    rows = reader.query("queries/maintain/stored_calls", parameters)
    return {row["cell"]: row["is_decided"] for row in rows}


def _megabytes(*n_bytes: int) -> str:
    return " to ".join(f"{size / 1e6:.1f} MB" for size in n_bytes)


def disk_use(job: Job) -> list[Row]:
    """Return the files and bytes of a warehouse: each table, the ledger, the database, and
    everything else.

    Parts that compaction replaced count as other files until they are deleted.
    """
    from tasks.bundles.stores import Folder  # fsspec takes long to import

    warehouse = Warehouse(job.warehouse)
    users = {warehouse.database: "database"}
    for table, parts in warehouse.store.all_current_parts().items():
        users |= dict.fromkeys(parts, f"table {table}")
    sizes = defaultdict(list)
    for name, n_bytes in Folder(warehouse.root).files().items():
        other_user = LEDGER if name.startswith(f"{LEDGER}/") else "other"
        sizes[users.get(warehouse.root / name, other_user)].append(n_bytes)
    rows = []
    for user, file_sizes in sizes.items():
        rows.append({"what": user, "n_files": len(file_sizes), "n_bytes": sum(file_sizes)})
    return sorted(rows, key=lambda row: (-row["n_bytes"], row["what"]))
