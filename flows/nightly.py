"""One night: at most one per benchmark at a time, compared with the last one, with alerts."""

from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

from flows.execution import Execution
from flows.run.coverage_report import is_at_stop
from flows.run.nights import end_of, night_of, stop_time
from flows.run.outcomes import FAILED, INTERRUPTED, RUNNING, SKIPPED, explained, outcome_of
from flows.run.record import is_in_progress, mark_killed, runs_of_night
from flows.work import execute_flow, has_work, without_work
from tasks.alerts.causes import control_alerts, coverage_alerts, stops_of
from tasks.alerts.findings import (
    COMPARED,
    Alert,
    alerts_of_reports,
    drift_alerts,
    drop_alerts,
    failure_alert,
    retirement_alerts,
    skipped_alert,
    stopping_drop_alerts,
)
from tasks.alerts.message import Message, Results, night_message
from tasks.alerts.sending import Delivery, deliver, history_of, ping, store_alerts
from tasks.benchmarks import load_benchmark
from tasks.compare.vintages import comparable_pairs, differences_of
from tasks.config.job import Job
from tasks.console import notice
from tasks.drift import control_sets_of_night, drift_rows
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import leaderboard
from tasks.figures.shown.successions import shown_effects
from tasks.run.coverage import low_coverage
from tasks.run.judge_configs import first_judge_config
from tasks.run.missing_work import wanted_tasks
from tasks.run.run_context import Retirement, retirements
from tasks.run.writing import JUDGE, StageReport
from tasks.stopping import last_looks
from warehouse import Row, Warehouse, WarehouseBusy, WarehouseError


def as_night(job: Job, moment: datetime | None = None) -> Job:
    """Return the job with the label and the stop time of the night at a moment.

    A job keeps the label and the stop time that it has. The moment is the scheduled time of the
    night if it is known, else the present: a night that starts late has the same stop time. A job
    with a label only, such as an earlier night that is run again, gets the first stop time after
    the moment.
    """
    moment = moment or datetime.now(UTC)
    nightly = job.settings.nightly
    stop_at = job.stop_at
    if stop_at is None and job.night is None:
        stop_at = end_of(nightly, moment)
    elif stop_at is None and nightly.stop_at is not None:
        stop_at = stop_time(nightly.stop_at, moment.astimezone(ZoneInfo(nightly.timezone)))
    night = job.night or night_of(nightly, moment)
    return job.model_copy(update={"night": night, "stop_at": stop_at})


def run_night(job: Job, *, is_verbose: bool) -> Execution:
    """Run one night, compare it with the last one, and send alerts.

    It does not start while another night of the benchmark is in progress. Alerts that cannot be
    delivered or stored change nothing about the night.
    """
    job = as_night(job)
    if job.stop_at is not None and job.stop_at <= datetime.now(UTC):
        reason = (
            f"its stop time {job.stop_at:%H:%M} has passed; start it again with a later stop time"
            " if needed"
        )
        return skip_night(job, reason)
    must_wait = job.settings.nightly.overlap == "queue"
    lock = Warehouse(job.warehouse).only_one(f"night-{job.benchmark}", wait=must_wait)
    alerts = []
    results = None
    try:
        with ExitStack() as stack:
            # Only the lock is taken in this `try`: a warehouse that is busy later is an error.
            try:
                stack.enter_context(lock)
            except WarehouseBusy as error:
                if not is_in_progress(job):
                    return skip_night(job, str(error).partition(";")[0])
                notice(f"skipped: the night of {job.night} is already in progress")
                return Execution(job, SKIPPED)
            alerts += _alerts_of_killed(job)
            execution = execute_flow(job, "night", is_verbose=is_verbose)
            alerts += _alerts_of(execution)
            if not execution.was_interrupted:
                results = _results(job)
    except BaseException as error:
        event = "was stopped"
        if isinstance(error, Exception):
            event = f"failed: {explained(error).line}"
        _send(job, [*alerts, failure_alert(f"the night of {job.night} {event}")])
        raise
    execution.alerts = [vars(alert) for alert in alerts]
    execution.message = _send(job, alerts, results)
    is_incomplete = any(report.has_failed or report.is_below_bar for report in execution.reports)
    if execution.outcome not in {FAILED, INTERRUPTED} and not is_incomplete:
        _ping(job)
    return execution


def _ping(job: Job) -> None:
    """Call the dead-man's switch, if one is configured, and store the result."""
    delivery = ping(job.settings.alerts)
    if delivery is None:
        return
    _store(job, [], [delivery])
    if delivery.status == "failed":
        notice(f"the dead-man's switch could not be called: {delivery.error}")


def skip_night(job: Job, reason: str, outcome: str = SKIPPED) -> Execution:
    """Send an alert that a night does not take place, or is not continued; none if it is
    complete.
    """
    if not has_work(job, "night"):
        reports = without_work(job, "night")
        return Execution(job, outcome_of(reports), reports)
    event = "was not continued" if runs_of_night(job) else "did not take place"
    alert = skipped_alert(f"the night of {job.night} {event}: {reason}")
    message = _send(job, [alert])
    return Execution(job, outcome, alerts=[vars(alert)], message=message)


# Alerts


def _alerts_of_killed(job: Job) -> list[Alert]:
    """Record killed runs, and return an alert for each killed night, which could send none."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.writing(notice):
        warehouse.verify()
        warehouse.publish()  # the very first night begins with an empty database
        killed_runs = mark_killed(job)
    alerts = []
    for run in killed_runs:
        if run["night"] is not None:
            event = f"the night of {run['night']} was killed"
            line = f"{event} (run {run['run_id']}, begun {run['started_at']:%H:%M} UTC)"
            alerts.append(failure_alert(line, {"night": run["night"]}, happened=event))
    return alerts


def _alerts_of(execution: Execution) -> list[Alert]:
    """Return the alerts of a night that has ended.

    They are about drifted judges, lower scores, low coverage, problems that the stages reported,
    and models that their providers switch off.
    """
    job = execution.job
    if execution.was_interrupted:
        return [failure_alert(f"the night of {job.night} was stopped; what was finished is kept")]
    alerts = []
    for report in execution.reports:
        if report.has_failed:
            alerts += [failure_alert(warning) for warning in report.warnings]
    alerts += _alerts_on_coverage(job, execution.reports)
    drifted_rows = drift_rows(job)
    alerts += drift_alerts(drifted_rows)
    alerts += _alerts_on_scores(job, _drifted_judges(job, {row["judge"] for row in drifted_rows}))
    alerts += alerts_of_reports(execution.reports)
    today = datetime.now(UTC).date()
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(job, reader)
        ends = map(partial(_with_effects, scope), retirements(job, today))
        alerts += retirement_alerts(ends, today)
    return alerts


def _with_effects(scope: Scope, end: Retirement) -> Retirement:
    """Return the end of a model; the line on a judge also says what its successions show."""
    if end.callee.kind != JUDGE:
        return end
    effects = shown_effects(scope, end.callee.label)
    return end._replace(line=f"{end.line}. {effects}") if effects else end


def _drifted_judges(job: Job, labels: Set[str]) -> dict[str, str]:
    """Return each judge whose scores a drift may explain -> the judge that drifted.

    That is the judge itself, or a member of the panel.

    Args:
        job: the job of the night.
        labels: the labels of judges that drifted.
    """
    judges = {label: label for label in labels}
    for panel in job.settings.judges:
        for member in panel.panel_members:
            if member.label in labels:
                judges[panel.label] = member.label
    return judges


def _alerts_on_scores(job: Job, drifted_judges: Mapping[str, str]) -> list[Alert]:
    """Return alerts for scores that fell; a model with `stopping` is compared by its last look."""
    with Warehouse(job.warehouse).reader() as reader:
        looks = last_looks(wanted_tasks(job, reader).comparisons, reader)
    stopping_models = {look["model"] for look in looks}
    compared = [
        row for row in comparisons_with_last_night(job) if row["model"] not in stopping_models
    ]
    settings = job.settings.alerts
    alerts = stopping_drop_alerts(looks, drifted_judges=drifted_judges)
    alerts += drop_alerts(
        compared,
        least_drop=settings.least_drop,
        alpha=settings.alpha,
        drifted_judges=drifted_judges,
    )
    return alerts


def _alerts_on_coverage(job: Job, reports: Sequence[StageReport]) -> list[Alert]:
    """Return an alert for each cause of low coverage, also that of the control sets."""
    is_cut_short = is_at_stop(reports)
    alerts = []
    if any(report.stage == "coverage" and report.is_below_bar for report in reports):
        alerts += coverage_alerts(
            low_coverage(job),
            stops_of(job, reports),
            is_cut_short=is_cut_short,
            errors=_frequent_errors(job),
        )
    if not is_cut_short:
        alerts += control_alerts(
            control_sets_of_night(job),
            job.settings.coverage.min,
            {alert.subject for alert in alerts if alert.facts["of"] == JUDGE},
        )
    return alerts


def _frequent_errors(job: Job) -> dict[tuple[str, str], str]:
    """Return the most frequent error of the run by kind and label of the called model or judge."""
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.query("queries/nightly/frequent_errors", {"run_id": job.run_id})
    return {(row["kind"], row["label"]): row["error"] for row in rows}


def _judge_change(job: Job) -> str:
    """Return a line that says which judge replaced which; empty if none was replaced."""
    parameters = {"benchmark": job.benchmark, "night": job.night}
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.query("queries/nightly/judge_change", parameters)
    if not rows:
        return ""
    return f"Judge changed: {rows[0]['change']}. Scores by different judges are not compared."


_SCORE_COLUMNS = ("split", "model", "judge", "mean_score", "coverage", "is_below_bar")
"""Columns of the leaderboard in a message."""


def _results(job: Job) -> Results:
    """Return the scores of the night under the first judge configuration with any, and the cost of
    the night's runs.
    """
    is_resampled = any(model.resample == "nightly" for model in job.settings.models)
    board = leaderboard(job, vintage=job.night if is_resampled else None)
    scored = [row for row in board if row["mean_score"] is not None]
    config = first_judge_config(job, load_benchmark(job.benchmark), scored)
    scores = []
    for row in scored:
        if config is not None and row["judge_config"] == config["judge_config"]:
            scores.append({name: row[name] for name in _SCORE_COLUMNS})
    runs = runs_of_night(job)
    costs = [run["cost_usd"] for run in runs]
    return Results(
        scores=scores,
        cost_usd=None if None in costs else sum(costs),
        calls=sum(run["calls"] or 0 for run in runs),
        judge_change=_judge_change(job),
    )


def alert_refused(job: Job, error: Exception) -> None:
    """Send an alert that a night was refused before it began.

    Nothing is stored: there may be no warehouse.
    """
    job = as_night(job)
    _deliver(job, [failure_alert(f"the night of {job.night} failed: {explained(error).line}")])


def alert_crashed(job: Job, reason: str) -> None:
    """Send an alert that the process of a night crashed before the night began.

    If it had begun, the next night sends the alert.
    """
    if not runs_of_night(job, outcome=RUNNING):
        _send(job, [failure_alert(f"the night of {job.night} crashed before it began: {reason}")])


def _send(job: Job, alerts: Sequence[Alert], results: Results | None = None) -> Message | None:
    """Print, store and send the alerts, and return the message about all of them, if any."""
    message = None
    if alerts:
        message = night_message(job, alerts, results)
        notice(f"alert: {message.title}")
        for line in message.lines:
            notice(f"  {line}")
    elif results is not None and results.judge_change:
        notice(results.judge_change)
    _store(job, alerts, [])
    _store(job, [], _deliver(job, alerts, results))
    return message


def _deliver(job: Job, alerts: Sequence[Alert], results: Results | None = None) -> list[Delivery]:
    """Send the alerts, print which deliveries failed, and return all deliveries."""
    deliveries = deliver(job.settings.alerts, alerts, job, results, history=history_of(job, alerts))
    for delivery in deliveries:
        if delivery.status == "failed":
            notice(f"could not send an alert to {delivery.receiver}: {delivery.error}")
    return deliveries


def _store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery]) -> None:
    """Store and publish alerts and deliveries; an error is printed, because the night goes on."""
    if not alerts and not deliveries:
        return
    try:
        store_alerts(job, alerts, deliveries)
        Warehouse(job.warehouse).publish()
    except (WarehouseError, OSError) as error:
        notice(f"alerts are not stored: {explained(error).line}")


# The comparison with the last night

_NAMES_IN_DIFFERENCES = {
    "model": "second_model",
    "judge": "second_judge",
    "judge_trial": "second_judge_trial",
    "n_wanted": "n_tasks_wanted",
}
"""Name of a value in an alert -> its name in a difference, if that has another one."""


def comparisons_with_last_night(job: Job) -> list[Row]:
    """Return a comparison of the night with the last one for each model, split and judge.

    Only nightly models and judges that are configured are compared.
    """
    assert job.night is not None
    models = {model.label for model in job.settings.models if model.resample == "nightly"}
    judges = job.settings.judge_labels
    compared = []
    with Warehouse(job.warehouse).reader() as reader:
        for pair in comparable_pairs(job, reader, job.night):
            if pair["model"] not in models or pair["judge"] not in judges:
                continue
            for difference in differences_of(job, reader, pair, job.night):
                compared.append(
                    {name: difference[_NAMES_IN_DIFFERENCES.get(name, name)] for name in COMPARED}
                )
    return compared
