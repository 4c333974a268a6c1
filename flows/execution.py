"""Running flows for a person: the record of the run, the lock, interruptions, and the exit code."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.environment import prepare
from flows.interruption import run_interruptibly
from flows.leaderboard import EVERY
from tasks.desk import refuse_unready, used_by
from tasks.progress import say
from tasks.reports import StageReport
from tasks.rules.errors import UsageError
from tasks.settings import Job
from tasks.spending import store_spend
from warehouse import Warehouse
from warehouse.contracts import TABLES

DONE, BELOW_BAR, FAILED, INTERRUPTED = "done", "below_bar", "failed", "interrupted"
STOPPED_AT_BUDGET, STOPPED_AT_TIME, SKIPPED, KILLED = "stopped_at_budget", "stopped_at_time", "skipped", "killed"
EXIT_CODES = {
    DONE: 0, BELOW_BAR: 3, FAILED: 1, INTERRUPTED: 130, STOPPED_AT_BUDGET: 4, STOPPED_AT_TIME: 4, SKIPPED: 0,
}  # fmt: skip
"""Outcome of a run -> exit code of the process."""


@dataclass
class Execution:
    """What came of a run."""

    job: Job
    outcome: str = DONE
    reports: list[StageReport] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The exit code that tells the outcome."""
        return EXIT_CODES[self.outcome]

    @property
    def was_interrupted(self) -> bool:
        """Whether somebody stopped the run."""
        return self.outcome == INTERRUPTED

    @property
    def was_skipped(self) -> bool:
        """Whether another one was at work already."""
        return self.outcome == SKIPPED

    @property
    def database(self) -> Path:
        """Where what was done can be queried."""
        return Warehouse(self.job.warehouse).database

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "run_id": self.job.run_id,
            "outcome": self.outcome,
            "database": str(self.database),
            "stages": [asdict(report) for report in self.reports],
            **({"night": self.job.night, "alerts": self.alerts} if self.job.night else {}),
        }


def execute(job: Job, work: Callable[[], Sequence[StageReport]]) -> Execution:
    """Do work on a warehouse, and keep a record of it in `runs`.

    Whatever was done before an error or an interruption is stored and published.
    """
    warehouse = Warehouse(job.warehouse)
    execution = Execution(job)
    with warehouse.writing(), warehouse.living(job.run_id):
        started_at = datetime.now(UTC)
        warehouse.write("runs", [_run_row(execution, started_at, None, "running")])
        warehouse.publish()
        tell_of_killed(job)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            execution.reports = list(work())
            execution.outcome = _outcome(execution.reports)
        except (KeyboardInterrupt, asyncio.CancelledError):
            execution.outcome = INTERRUPTED
            say("interrupted: what was finished is kept; the same command goes on from here")
        except BaseException:
            execution.outcome = FAILED
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
            store_spend(job)
            warehouse.write("runs", [_run_row(execution, started_at, datetime.now(UTC), execution.outcome)])
            warehouse.publish()
    return execution


def tell_of_killed(job: Job) -> list[dict[str, Any]]:
    """Write down of runs that nobody is at work on any more that they were killed; these rows of `runs`."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        unfinished = reader.rows("select * from runs where outcome = 'running' and run_id <> ?", [job.run_id])
    killed = [
        {name: row[name] for name in TABLES["runs"].columns} | {"outcome": KILLED}
        for row in unfinished
        if not warehouse.is_living(row["run_id"])
    ]
    warehouse.write("runs", killed)
    if killed:
        warehouse.publish()
    for row in killed:
        say(f"run {row['run_id']} of {row['started_at']:%Y-%m-%d %H:%M} UTC was killed; what it lacks is done now")
    return killed


def _outcome(reports: Sequence[StageReport]) -> str:
    if any(report.has_failed for report in reports):
        return FAILED
    if any(report.is_at_budget for report in reports):
        return STOPPED_AT_BUDGET
    if any(report.is_at_stop_time for report in reports):
        return STOPPED_AT_TIME
    return BELOW_BAR if any(report.is_below_bar for report in reports) else DONE


def execute_flow(job: Job, flow_name: str, *, is_verbose: bool, **options: bool) -> Execution:
    """Run one of the flows of `flows.evaluate` or `flows.stages` as the work of an execution."""
    unknown = sorted(set(job.named_judges or ()) - {judge.label for judge in job.settings.judges})
    if unknown and flow_name in _JUDGING:
        raise UsageError(f"--judge {unknown[0]}: is not configured, so it cannot be asked")
    if job.vintage == EVERY:
        raise UsageError(f"--vintage {EVERY}: asks a leaderboard for all of them; name the one to sample")
    refuse_unready(job)
    prepare(is_verbose=is_verbose)
    if not job.is_quiet and not os.environ.get("PREFECT_API_URL"):
        say("starting Prefect and a server of its own, which takes 10 to 20 s (PREFECT_API_URL uses a running one)")
    return execute(job, lambda: run_interruptibly(lambda: _run(job, flow_name, options)))


_JUDGING = {"evaluate", "night", "backfill", "judge"}


async def _run(job: Job, flow_name: str, options: dict[str, bool]) -> list[StageReport]:
    from prefect import tags

    from flows import evaluate, stages
    from flows.cancellation import told_as_cancelled
    from flows.showing import keep_logs_short, tags_of

    keep_logs_short()
    try:
        with tags(*tags_of(job)):
            if flow_name in {"evaluate", "night", "backfill"}:
                found: list[StageReport] = await getattr(evaluate, flow_name)(job, **options)
                return found
            report = await getattr(stages, f"{flow_name}_flow")(job, **options)
    except asyncio.CancelledError:
        await told_as_cancelled(job)
        raise
    return [report, *([evaluate.coverage_report(job, flow_name)] if flow_name in {"sample", "judge"} else [])]


def _run_row(execution: Execution, started_at: datetime, ended_at: datetime | None, outcome: str) -> dict[str, Any]:
    job, used = execution.job, used_by(execution.job)
    return {
        "run_id": job.run_id,
        "command": _command(),
        "night": job.night,
        "config": json.dumps(job.settings.model_dump(mode="json"), sort_keys=True),
        "git_commit": _git_commit(),
        "started_at": started_at,
        "ended_at": ended_at,
        "outcome": outcome,
        "calls": used.calls,
        "prompt_tokens": used.prompt_tokens,
        "cached_tokens": used.cached_tokens if used.cached_share is not None else None,
        "completion_tokens": used.completion_tokens,
        "cached_share": used.cached_share,
        **_made(execution, outcome),
    }


def _made(execution: Execution, outcome: str) -> dict[str, Any]:
    """How many rows a run made and what they cost: by its stages' reports, or by the tables where it was cut short."""
    made = {report.stage: report for report in execution.reports if report.stage in {"sample", "judge"}}
    if outcome in {INTERRUPTED, FAILED}:
        warehouse = Warehouse(execution.job.warehouse)
        warehouse.publish()
        with warehouse.reader() as reader:
            return reader.rows(_MADE, [execution.job.run_id] * 2)[0]
    costs = [report.cost_usd for report in made.values()]
    return {
        "responses_made": made["sample"].rows if "sample" in made else 0,
        "verdicts_made": made["judge"].rows if "judge" in made else 0,
        "cost_usd": None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs),
    }


_MADE = """
    with made as (
        select 'response' as kind, cost_usd from responses where run_id = ?
        union all
        select 'verdict' as kind, cost_usd from verdicts where run_id = ?
    )
    select
        count(*) filter (kind = 'response') as responses_made,
        count(*) filter (kind = 'verdict') as verdicts_made,
        if(count(*) = count(cost_usd), coalesce(sum(cost_usd), 0), null) as cost_usd
    from made
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
