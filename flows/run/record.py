"""The record of runs: their rows in `runs`, and the job that such a row describes."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from flows.run.outcomes import FAILED, INTERRUPTED, KILLED, RUNNING, any_failed
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.console import notice
from tasks.dataset.source import with_revision
from tasks.llm.ledger.files import was_damaged_since
from tasks.maintain.spend import run_total, store_calls
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import TABLES, Row, Warehouse, WarehouseError

SELECTION = {"limit", "vintage", "named_models", "named_judges", "named_tasks", "named_trials"}
"""Fields of a job, outside its settings, that narrow it."""
_NO_CALLS = {
    "calls": 0,
    "prompt_tokens": 0,
    "cached_tokens": None,
    "cached_share": None,
    "completion_tokens": 0,
    "cost_usd": 0.0,
}


def run_row(
    job: Job,
    reports: Sequence[StageReport],
    started_at: datetime,
    ended_at: datetime | None,
    outcome: str,
) -> Row:
    """Return the current row of a run.

    The numbers of responses and verdicts come from the stages' reports, or from the tables if the
    run was cut short.
    """
    row_counts = {
        "responses_made": _n_rows_of(reports, "sample"),
        "verdicts_made": _n_rows_of(reports, "judge"),
    }
    if (not reports and outcome in {INTERRUPTED, FAILED}) or any_failed(reports):
        # Publishing may be what failed; then the numbers of the reports stand.
        with suppress(WarehouseError):
            row_counts = _stored_row_counts(job)
    if ended_at is not None:
        ended_at = max(ended_at, started_at)  # the clock may have been set back during the run
    calls = _NO_CALLS if outcome == RUNNING else run_total(job, job.run_id)
    row = {
        "run_id": job.run_id,
        "night": job.night,
        "outcome": outcome,
        "command": _command(),
        "config": _config(job),
        "git_commit": _git_commit(),
        "started_at": started_at,
        "ended_at": ended_at,
    }
    return row | row_counts | calls


def _n_rows_of(reports: Sequence[StageReport], stage: str) -> int:
    return sum(report.rows for report in reports if report.stage == stage)


def _stored_row_counts(job: Job) -> Row:
    """Return the numbers of rows that the run has made, after publishing all that it wrote."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        (row,) = reader.query("queries/run/rows_of_run", {"run_id": job.run_id})
    return row


def _command() -> str:
    """Return the command of this process; of a served run, the name of its flow run."""
    runtime = sys.modules.get("prefect.runtime")
    if runtime is not None and runtime.flow_run.id is not None:
        return f"prbench serve: {runtime.flow_run.name}"
    return " ".join(["prbench", *sys.argv[1:]])


def _config(job: Job) -> str:
    """Return the settings of a job as JSON, with what narrows it beside them (`selection`)."""
    config = job.settings.model_dump(mode="json")
    selection = job.model_dump(include=SELECTION, exclude_defaults=True)
    if selection:
        config["selection"] = selection
    return json.dumps(config, sort_keys=True)


def _git_commit() -> str | None:
    """Return the commit of the checkout that holds this code; None outside one, or without git."""
    checkout = Path(__file__).parents[2]
    # An installed package may be inside the checkout of another project, whose commit is not its
    # version.
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout.strip()


# Stored runs


def stored_runs(job: Job, **values: Any) -> list[Row]:
    """Return the rows of runs with these values; none if nothing is published yet."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return []
    runs = "(select *, config ->> 'benchmark' as benchmark from runs)"
    columns = ", ".join(TABLES["runs"].columns)
    with warehouse.reader() as reader:
        return reader.select(runs, columns, **values)


def runs_of_night(job: Job, **values: Any) -> list[Row]:
    """Return the rows of the runs of the job's night with these values."""
    return stored_runs(job, night=job.night, benchmark=job.benchmark, **values)


def is_in_progress(job: Job) -> bool:
    """Return whether a run of the job's night is in progress."""
    living_ids = Warehouse(job.warehouse).living_runs()
    return any(row["run_id"] in living_ids for row in runs_of_night(job, outcome=RUNNING))


def mark_killed(job: Job) -> list[Row]:
    """Record unfinished runs of the benchmark without a living process as killed, and return their
    rows.
    """
    warehouse = Warehouse(job.warehouse)
    unfinished = stored_runs(job, outcome=RUNNING, benchmark=job.benchmark)
    living_ids = {job.run_id, *warehouse.living_runs()}
    killed = [row for row in unfinished if row["run_id"] not in living_ids]
    if not killed:
        return []
    store_calls(job)
    for row in killed:
        row |= {"outcome": KILLED, **_total_of_killed(job, row)}
    warehouse.write("runs", killed)
    warehouse.publish()
    for row in killed:
        start = f"{row['started_at']:%Y-%m-%d %H:%M}"
        notice(f"run {row['run_id']} of {start} UTC was killed; this run does its missing work")
    return killed


def _total_of_killed(job: Job, row: Row) -> Row:
    """Return the calls, tokens and cost of a killed run.

    The cost is None if all its calls may be lost with a damaged ledger.
    """
    total = run_total(job, row["run_id"])
    started_s = row["started_at"].timestamp()
    if not total["cost_usd"] and was_damaged_since(job.warehouse / LEDGER, started_s):
        total["cost_usd"] = None
    return total


def job_of_run(job: Job, row: Row) -> Job:
    """Return the job that a row of `runs` records, on the warehouse of `job`.

    The data set of `job` is not looked up again if the run has the same one.

    Raises:
        ValueError: another version of the code wrote the row, or another program.
    """
    config = json.loads(row["config"])
    config.pop("alerts", None)  # addresses are not stored in full
    selection = config.pop("selection", {})
    settings = Settings.model_validate(config)
    run_job = Job(
        settings=settings,
        warehouse=job.warehouse,
        run_id=row["run_id"],
        night=row["night"],
        **selection,
    )
    if not _has_same_data(job, settings):
        return with_revision(run_job)
    splits = settings.dataset.splits
    return run_job.looking_up(
        lambda: job.data.model_copy(update={"splits": splits or job.data.splits})
    )


def _has_same_data(job: Job, settings: Settings) -> bool:
    """Return whether settings name the data set of a job, apart from its splits.

    All splits share one revision. Settings for all splits do not name them, so the job must be on
    all splits too.
    """
    splits = settings.dataset.splits
    if job.settings.dataset.splits and not splits:
        return False
    dataset = job.settings.dataset.model_copy(update={"splits": splits})
    return job.benchmark == settings.benchmark and dataset == settings.dataset
