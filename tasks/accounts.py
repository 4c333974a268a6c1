"""What runs came to: what was spent on which day, and the latest runs, those that go on or were killed included."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.settings import Job
from tasks.spending import Row, spend_of_all
from warehouse import Warehouse

_COUNTS = ("calls", "failed_calls", "unpriced_calls", "prompt_tokens", "cached_tokens", "completion_tokens")
MOST_RUNS = 20


def spent(job: Job, since: datetime | None = None) -> list[Row]:
    """The spend of each day (UTC) and model that was called, latest day first: all attempts, discarded ones included.

    The ledger is asked, so what goes on now is in it; where it knows less than is published, because a file of it is
    gone or the rows came from another warehouse, what is published counts. `since` takes whole days.

    Raises:
        PipelineError: a file of the ledger cannot be read.
    """
    first_day = "" if since is None else since.astimezone(UTC).date().isoformat()
    return _by_day_and_model(row for row in spend_of_all(job) if row["day"] >= first_day)


def _by_day_and_model(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["day"], row["called_model"]].append(row)
    return [
        {"day": day, "called_model": called_model}
        | {name: sum(row[name] for row in groups[day, called_model]) for name in _COUNTS}
        | {"cost_usd": math.fsum(row["cost_usd"] for row in groups[day, called_model])}
        for day, called_model in sorted(sorted(groups, key=lambda key: key[1]), key=lambda key: key[0], reverse=True)
    ]


def latest_runs(job: Job, since: datetime | None = None) -> list[Row]:
    """The latest runs, or all since a moment; one whose process is no more is `killed`.

    Raises:
        WarehouseError: nothing is published.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        rows = reader.rows(sql.read("questions/runs"), {"since": since, "n_most": MOST_RUNS if since is None else None})
    for row in rows:
        if row["outcome"] == "running" and not warehouse.is_living(row["run_id"]):
            row["outcome"] = "killed"
    return rows
