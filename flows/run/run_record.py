"""The record of a run: its row in `runs`, written when it begins and when it ends."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tasks.config.settings import Job
from tasks.console.progress import notice
from tasks.maintain.run_history import run_cost, total_cost_usd
from tasks.maintain.spend import store_spend
from tasks.rules.secrecy import REFERENCE
from tasks.run.run_context import used_by
from tasks.run.stage_report import StageReport
from warehouse import Warehouse
from warehouse.contracts.tables import TABLES

RUNNING, FAILED, INTERRUPTED, KILLED = "running", "failed", "interrupted", "killed"


def tell_of_killed(job: Job) -> list[dict[str, Any]]:
    """Write down of runs that nobody is at work on any more that they were killed; these rows of `runs`."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        unfinished = reader.rows("select * from runs where outcome = 'running' and run_id <> ?", [job.run_id])
    if unfinished:
        store_spend(job)
    killed = [
        {name: row[name] for name in TABLES["runs"].columns}
        | {"outcome": KILLED, "cost_usd": total_cost_usd(run_cost(job, row["run_id"]))}
        for row in unfinished
        if not warehouse.is_living(row["run_id"])
    ]
    warehouse.write("runs", killed)
    if killed:
        warehouse.publish()
    for row in killed:
        notice(
            f"run {row['run_id']} of {row['started_at']:%Y-%m-%d %H:%M} UTC was killed; this run does what is missing"
        )
    return killed


def is_under_way(job: Job) -> bool:
    """Whether a run of the job's night goes on; not known, and so no, where nothing was published yet."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return False
    with warehouse.reader() as reader:
        rows = reader.rows(
            "select run_id from runs where outcome = 'running' and night = ? and config ->> 'benchmark' = ?",
            [job.night, job.settings.benchmark],
        )
    return any(warehouse.is_living(row["run_id"]) for row in rows)


def run_row(
    job: Job, reports: Sequence[StageReport], started_at: datetime, ended_at: datetime | None, outcome: str
) -> dict[str, Any]:
    """The row of a run as it stands."""
    used = used_by(job)
    return {
        "run_id": job.run_id,
        "command": _command(),
        "night": job.night,
        "config": json.dumps(_config(job), sort_keys=True),
        "git_commit": _git_commit(),
        "started_at": started_at,
        "ended_at": ended_at,
        "outcome": outcome,
        "calls": used.calls,
        "prompt_tokens": used.prompt_tokens,
        "cached_tokens": used.cached_tokens if used.cached_share is not None else None,
        "completion_tokens": used.completion_tokens,
        "cached_share": used.cached_share,
        **_made(job, reports, outcome),
    }


def _config(job: Job) -> dict[str, Any]:
    """The configuration as it is kept. Of the addresses of alerts only the host: what follows may be a secret."""
    document = job.settings.model_dump(mode="json")
    alerts = document["alerts"]
    alerts["ping"] = _host_of(alerts["ping"])
    for receiver in alerts["to"]:
        receiver["webhook"] = _host_of(receiver["webhook"])
    return document


def _host_of(address: str | None) -> str | None:
    if address is None or REFERENCE.fullmatch(address):
        return address
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}/..."


def _made(job: Job, reports: Sequence[StageReport], outcome: str) -> dict[str, Any]:
    """How many rows a run made, by its stages' reports, or by the tables where it was cut short; and what it cost."""
    if outcome == RUNNING:
        return {"responses_made": 0, "verdicts_made": 0, "cost_usd": 0.0}
    warehouse = Warehouse(job.warehouse)
    if outcome in {INTERRUPTED, FAILED}:
        warehouse.publish()
        with warehouse.reader() as reader:
            rows_made = reader.rows(_MADE, [job.run_id] * 2)[0]
    else:
        rows_made = {
            "responses_made": sum(report.rows for report in reports if report.stage == "sample"),
            "verdicts_made": sum(report.rows for report in reports if report.stage == "judge"),
        }
    return {**rows_made, "cost_usd": total_cost_usd(run_cost(job, job.run_id))}


_MADE = """
    select
        (select count(*) from responses where run_id = ?) as responses_made,
        (select count(*) from verdicts where run_id = ?) as verdicts_made
"""


def _command() -> str:
    """What started the run: the command, or the run of a deployment."""
    if "prefect" in sys.modules:
        from prefect.runtime import flow_run

        if flow_run.id is not None:
            return f"prbench serve: {flow_run.name}"
    return " ".join(["prbench", *sys.argv[1:]])


def _git_commit() -> str | None:
    """The commit of the checkout that this code is in; None when it is not in one, or git is not there."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
