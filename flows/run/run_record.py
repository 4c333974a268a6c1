"""The row of a run in `runs`, written when it starts and when it ends."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import sql
from flows.run.outcomes import FAILED, INTERRUPTED, KILLED, RUNNING, any_failed
from tasks.config import DataRevision, Job, Settings
from tasks.console import notice
from tasks.dataset import with_revision
from tasks.maintain import store_spend, total_cost_usd
from tasks.run import StageReport, used_by
from warehouse import TABLES, Warehouse

SELECTION = ("limit", "vintage", "named_models", "named_judges", "named_tasks", "named_trials")
"""What narrows a job beside its settings."""


def mark_killed(job: Job) -> list[dict[str, Any]]:
    """Record as killed the unfinished runs whose process is gone; gives their rows of `runs`."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        unfinished = reader.rows("select * from runs where outcome = 'running' and run_id <> ?", [job.run_id])
    if unfinished:
        store_spend(job)
    killed = [
        {name: row[name] for name in TABLES["runs"].columns}
        | {"outcome": KILLED, "cost_usd": total_cost_usd(job, row["run_id"])}
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


def is_in_progress(job: Job) -> bool:
    """Whether a run of the job's night is in progress; False if nothing was published yet."""
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
    """The current row of a run."""
    used = used_by(job)
    return {
        "run_id": job.run_id,
        "command": _command(),
        "night": job.night,
        "config": json.dumps({**job.settings.model_dump(mode="json"), **_selection(job)}, sort_keys=True),
        "git_commit": _git_commit(),
        "started_at": started_at,
        # The clock may have been set back meanwhile.
        "ended_at": ended_at and max(ended_at, started_at),
        "outcome": outcome,
        "calls": used.calls,
        "prompt_tokens": used.prompt_tokens,
        "cached_tokens": used.cached_tokens if used.cached_share is not None else None,
        "completion_tokens": used.completion_tokens,
        "cached_share": used.cached_share,
        **_made(job, reports, outcome),
    }


def _selection(job: Job) -> dict[str, Any]:
    """What the run narrowed beside the configuration, under a key of its own; nothing where it took all."""
    named = {name: getattr(job, name) for name in SELECTION}
    narrowed = {name: value for name, value in named.items() if value != Job.model_fields[name].default}
    return {"selection": narrowed} if narrowed else {}


def job_of_run(job: Job, row: Mapping[str, Any]) -> Job:
    """The job that a row of `runs` is of, on the warehouse of another job, whose data set is looked up once.

    Raises:
        ValueError: another version of the code wrote the row, or another program.
    """
    config = json.loads(row["config"])
    config.pop("alerts", None)  # their addresses are not stored in full
    selection = config.pop("selection", {})
    of_run = Job(
        settings=Settings.model_validate(config),
        warehouse=job.warehouse,
        run_id=row["run_id"],
        night=row["night"],
        **{name: value for name, value in selection.items() if name in SELECTION},
    )
    data = _data_of(job, of_run.settings)
    return with_revision(of_run) if data is None else of_run.looking_up(data)


def _data_of(job: Job, settings: Settings) -> Callable[[], DataRevision] | None:
    """How a job's data set gives that of other settings; None where it is another one, or its splits are not known.

    A revision is of the whole data set, whichever splits are chosen.
    """
    own, other = job.settings.dataset, settings.dataset
    if (job.settings.benchmark, own) == (settings.benchmark, other):
        return lambda: job.data
    narrowed = own.model_copy(update={"splits": other.splits})
    if not other.splits or (job.settings.benchmark, narrowed) != (settings.benchmark, other):
        return None
    return lambda: job.data.model_copy(update={"splits": other.splits})


def _made(job: Job, reports: Sequence[StageReport], outcome: str) -> dict[str, Any]:
    """How many rows a run made and what it cost: by the reports of its stages, or by the tables if it was cut short."""
    if outcome == RUNNING:
        return {"responses_made": 0, "verdicts_made": 0, "cost_usd": 0.0}
    warehouse = Warehouse(job.warehouse)
    if outcome in {INTERRUPTED, FAILED} or any_failed(reports):
        warehouse.publish()
        with warehouse.reader() as reader:
            rows_made = reader.rows(sql.read("questions/run/rows_of_run"), {"run_id": job.run_id})[0]
    else:
        rows_made = {
            "responses_made": sum(report.rows for report in reports if report.stage == "sample"),
            "verdicts_made": sum(report.rows for report in reports if report.stage == "judge"),
        }
    return {**rows_made, "cost_usd": total_cost_usd(job, job.run_id)}


def _command() -> str:
    """What started the run: the command, or the run of a deployment."""
    runtime = sys.modules.get("prefect.runtime")
    if runtime is not None and runtime.flow_run.id is not None:
        return f"prbench serve: {runtime.flow_run.name}"
    return " ".join(["prbench", *sys.argv[1:]])


def _git_commit() -> str | None:
    """The commit of the checkout that holds this code; None outside a checkout, or without git."""
    folder = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD", "--show-prefix"],
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    commit, _, prefix = answer.stdout.strip().partition("\n")
    # An installed package may be somewhere inside the checkout of another project, whose commit says nothing of it.
    is_ours = answer.returncode == 0 and prefix == f"{folder.parent.name}/{folder.name}/"
    return commit if is_ours else None
