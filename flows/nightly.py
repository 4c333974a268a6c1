"""A night that nobody watches: one of a benchmark at a time, and whoever has to know is told how it went."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
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
from flows.nightly_changes import comparisons
from flows.run.errors import explained
from flows.run.nightly_schedule import begin_of, night_of, stop_time
from flows.run.run_record import is_under_way, tell_of_killed
from flows.server.own_server import started_for_this_run
from flows.server.prefect_environment import prepare
from tasks.alerts import (
    Alert,
    Delivery,
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
from tasks.config.settings import Job
from tasks.console.progress import notice
from tasks.drift import drifted
from tasks.rules.errors import PipelineError
from warehouse import Warehouse, WarehouseBusy, WarehouseError

_ENDED = {DONE, BELOW_BAR, STOPPED_AT_BUDGET, STOPPED_AT_TIME}
"""Outcomes after which the dead-man's switch is called: the night took place, whatever it found."""


def as_night(job: Job, now: datetime | None = None) -> Job:
    """The job as the night that belongs to this moment, if it is not one already, with its stop time.

    The configured stop time is that of the night: one that begins late stops no later. A night that is asked for by its
    label, to be done again, may go on until the next one.
    """
    now = now or datetime.now(UTC)
    nightly = job.settings.nightly
    stop_at = job.stop_at
    if stop_at is None and nightly.stop_at is not None:
        since = now if job.night else begin_of(nightly, now)
        stop_at = stop_time(nightly.stop_at, since.astimezone(ZoneInfo(nightly.timezone)))
    return job.model_copy(update={"night": job.night or night_of(nightly, now), "stop_at": stop_at})


def run_night(
    job: Job, *, is_verbose: bool, retry_failed: bool = False, replace_lost: bool = False,
    begun_at: datetime | None = None,
) -> Execution:  # fmt: skip
    """Run a night, unless another one is at work, compare it with the one before, and send alerts.

    Alerts that cannot be delivered or stored are told, and change nothing about the night. `begun_at` is the moment
    that the schedule meant.
    """
    job = as_night(job, begun_at)
    if job.stop_at is not None and job.stop_at <= datetime.now(UTC):
        when = f"{job.stop_at:%H:%M}"
        return skip_night(job, f"its stop time {when} has passed (give another with --stop-at)")
    must_wait = job.settings.nightly.overlap == "queue"
    alerts: list[Alert] = []
    try:
        with ExitStack() as held:
            try:
                held.enter_context(Warehouse(job.warehouse).only_one(f"night-{job.settings.benchmark}", wait=must_wait))
            except WarehouseBusy as busy:
                return _already_at_work(job, busy)
            alerts += _of_killed(job)
            execution = execute_flow(
                job, "night", is_verbose=is_verbose, replace_lost=replace_lost, retry_failed=retry_failed
            )
            alerts += _found(execution)
    except Exception as error:
        _tell(job, [*alerts, failure(f"the night of {job.night} failed: {explained(error)[1]}")])
        raise
    except BaseException:
        _tell(job, [*alerts, failure(f"the night of {job.night} was stopped")])
        raise
    execution.alerts = [alert.as_json for alert in alerts]
    _tell(job, alerts)
    if execution.outcome in _ENDED:
        _say_that_it_ended(job)
    return execution


def _already_at_work(job: Job, busy: WarehouseBusy) -> Execution:
    """Another night is at work: this one does not take place, unless it is the same."""
    if is_under_way(job):
        notice(f"skipped: the night of {job.night} is under way already")
        return Execution(job, SKIPPED)
    return skip_night(job, str(busy).partition(";")[0])


def skip_night(job: Job, why: str) -> Execution:
    """Say and tell that a night does not take place."""
    notice(f"skipped: {why}")
    alert = skipped(f"the night of {job.night} did not take place: {why}")
    _tell(job, [alert])
    return Execution(job, SKIPPED, alerts=[alert.as_json])


def _of_killed(job: Job) -> list[Alert]:
    """Nights that were killed since the last one: they could not say so themselves."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.writing():
        warehouse.verify()
        warehouse.publish()  # the first night of all begins with an empty database
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
    judges = drifted(job)
    fallen = drops(
        comparisons(job),
        least_drop=alerts.least_drop,
        alpha=alerts.alpha,
        drifted_judges={judge.judge for judge in judges},
    )
    failed = [failure(warning) for report in execution.reports if report.has_failed for warning in report.warnings]
    return [*failed, *drifts(judges), *fallen, *alerts_of_reports(execution.reports)]


def _tell(job: Job, alerts: Sequence[Alert]) -> None:
    """Store the alerts, send them, and store what became of the sending."""
    for alert in alerts:
        notice(f"alert: {alert.line}")
    _store(job, alerts, [])
    if alerts and any(receiver.prefect for receiver in job.settings.alerts.to):
        _have_a_server()
    deliveries = asyncio.run(deliver(job.settings.alerts, alerts, Night.of(job)))
    for each in deliveries:
        if each.status == "failed":
            notice(f"could not send an alert to {each.receiver}: {each.error}")
    _store(job, [], deliveries)


def _have_a_server() -> None:
    """Blocks are on Prefect's server, which a night that does not take place has not started."""
    prepare()
    server = started_for_this_run()
    try:
        if server is not None:
            asyncio.run(server.until_ready())
    except PipelineError as error:
        notice(f"alerts may not reach Prefect blocks: {error}")


def _store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery]) -> None:
    """Store and publish; where the warehouse refuses, that is told, and nobody goes untold for it."""
    if not alerts and not deliveries:
        return
    try:
        store(job, alerts, deliveries)
        Warehouse(job.warehouse).publish()
    except (WarehouseError, OSError) as error:
        notice(f"alerts are not stored: {explained(error)[1]}")


def _say_that_it_ended(job: Job) -> None:
    pinged = asyncio.run(ping(job.settings.alerts))
    if pinged is not None:
        _store(job, [], [pinged])
        if pinged.status == "failed":
            notice(f"the dead-man's switch could not be called: {pinged.error}")
