"""A night that nobody watches: one at a time, and whoever has to know is told how it went."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from flows.execution import (
    BELOW_BAR,
    DONE,
    SKIPPED,
    STOPPED_AT_BUDGET,
    STOPPED_AT_TIME,
    Execution,
    execute_flow,
)
from flows.explaining import explained
from flows.night_changes import comparisons
from flows.record import tell_of_killed
from flows.schedule import night_of, stop_time
from tasks.alerts import (
    Alert,
    DriftedJudge,
    Night,
    alerts_of_reports,
    deliver,
    drifts,
    drops,
    failure,
    ping,
    skipped,
    store,
)
from tasks.drift import drifted
from tasks.progress import say
from tasks.settings import Job
from warehouse import Warehouse, WarehouseBusy

_LOCK = "night"
_ENDED = {DONE, BELOW_BAR, STOPPED_AT_BUDGET, STOPPED_AT_TIME}
"""Outcomes after which the dead-man's switch is called: the night took place, whatever it found."""


def as_night(job: Job, now: datetime | None = None) -> Job:
    """The job as the night that belongs to this moment, if it is not one already, with its stop time."""
    now = now or datetime.now(UTC)
    nightly = job.settings.nightly
    stop_at = job.stop_at
    if stop_at is None and nightly.stop_at is not None:
        stop_at = stop_time(nightly.stop_at, now.astimezone(ZoneInfo(nightly.timezone)))
    return job.model_copy(update={"night": job.night or night_of(nightly, now), "stop_at": stop_at})


def run_night(job: Job, *, is_verbose: bool, retry_failed: bool = False) -> Execution:
    """Run a night, unless another one is at work, compare it with the one before, and send alerts.

    Alerts that cannot be delivered are told and stored, and change nothing about the night.
    """
    job = as_night(job)
    must_wait = job.settings.nightly.overlap == "queue"
    try:
        with Warehouse(job.warehouse).only_one(_LOCK, wait=must_wait):
            return _watched(job, is_verbose=is_verbose, retry_failed=retry_failed)
    except WarehouseBusy as busy:
        say(f"skipped: {busy}")
        alert = skipped(f"the night of {job.night} did not take place: {busy}")
        _tell(job, [alert])
        return Execution(job, SKIPPED, alerts=[alert.as_json])


def _watched(job: Job, *, is_verbose: bool, retry_failed: bool) -> Execution:
    alerts = _of_killed(job)
    try:
        execution = execute_flow(job, "night", is_verbose=is_verbose, retry_failed=retry_failed)
        alerts += _found(execution)
        execution.alerts = [alert.as_json for alert in alerts]
    except Exception as error:
        alerts.append(failure(f"the night of {job.night} failed: {explained(error)[1]}"))
        raise
    except BaseException:
        alerts.append(failure(f"the night of {job.night} was stopped"))
        raise
    finally:
        _tell(job, alerts)
    if execution.outcome in _ENDED:
        _say_that_it_ended(job)
    return execution


def _of_killed(job: Job) -> list[Alert]:
    """Nights that were killed since the last one: they could not say so themselves."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.writing():
        warehouse.publish()
        killed = tell_of_killed(job)
    return [
        failure(f"the night of {row['night']} was killed (run {row['run_id']}, begun {row['started_at']:%H:%M} UTC)")
        for row in killed
        if row["night"] is not None
    ]


def _found(execution: Execution) -> list[Alert]:
    """What the night found: judges that drifted, scores that fell, and what its stages say."""
    if execution.was_interrupted:
        return [failure(f"the night of {execution.job.night} was stopped; what was finished is kept")]
    job, alerts = execution.job, execution.job.settings.alerts
    judges = [DriftedJudge(**asdict(found)) for found in drifted(job)]
    fallen = drops(
        comparisons(job),
        least_drop=alerts.least_drop,
        alpha=alerts.alpha,
        drifted_judges={judge.judge for judge in judges},
    )
    failed = [failure(warning) for report in execution.reports if report.has_failed for warning in report.warnings]
    return [*failed, *drifts(judges), *fallen, *alerts_of_reports(execution.reports)]


def _tell(job: Job, alerts: Sequence[Alert]) -> None:
    """Send the alerts and store them, with what became of the sending."""
    for alert in alerts:
        say(f"alert: {alert.line}")
    deliveries = asyncio.run(deliver(job.settings.alerts, alerts, Night.of(job)))
    for each in deliveries:
        if each.status == "failed":
            say(f"alert not delivered to {each.receiver}: {each.error}")
    store(job, alerts, deliveries)
    if alerts:
        Warehouse(job.warehouse).publish()


def _say_that_it_ended(job: Job) -> None:
    pinged = asyncio.run(ping(job.settings.alerts))
    if pinged is not None:
        store(job, [], [pinged])
        Warehouse(job.warehouse).publish()
        if pinged.status == "failed":
            say(f"the dead-man's switch could not be called: {pinged.error}")
