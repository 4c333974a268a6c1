"""One night: at most one per benchmark at a time, compared with the last one, with alerts."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import sql
from flows.execution import Execution, execute_flow, is_in_progress, mark_killed, runs_of_night
from flows.run.nights import end_of, night_of, stop_time
from flows.run.outcomes import FAILED, INTERRUPTED, RUNNING, SKIPPED, explained, outcome_of
from flows.work import has_work, without_work
from tasks.alerts.causes import control_alerts, coverage_alerts, stops_of
from tasks.alerts.findings import (
    COMPARED,
    Alert,
    alerts_of_reports,
    drifts,
    drops,
    failure,
    skipped,
    stopping_drops,
)
from tasks.alerts.message import Message, Results, night_message
from tasks.alerts.sending import Delivery, deliver, history_of, ping, store
from tasks.compare.differences import compare, rows_of
from tasks.compare.pairs import Comparison
from tasks.config.job import Job
from tasks.console import notice
from tasks.drift import control_sets_of_night, drifted
from tasks.figures.shown.leaderboard import leaderboard
from tasks.rules.errors import PipelineError
from tasks.rules.statistics.comparison import holm
from tasks.run.coverage import low_coverage
from tasks.run.writing import StageReport
from tasks.stopping import last_looks
from warehouse import Reader, Warehouse, WarehouseBusy, WarehouseError


def as_night(job: Job, moment: datetime | None = None) -> Job:
    """Return the job with the label of the night at a moment, unless it has one, and with its stop
    time.

    The moment is the scheduled time of the night if it is known, else the present. A night that
    starts late has the same stop time. An earlier night that is run again by its label ends at the
    next stop time.
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


def run_night(job: Job, *, is_verbose: bool, scheduled_at: datetime | None = None) -> Execution:
    """Run one night, unless another one is in progress, compare it with the last one, and send
    alerts.

    Alerts that cannot be delivered or stored change nothing about the night. `scheduled_at` is the
    time for which a scheduler stated that it started it.
    """
    job = as_night(job, scheduled_at)
    if job.stop_at is not None and job.stop_at <= datetime.now(UTC):
        when = f"{job.stop_at:%H:%M}"
        return skip_night(
            job, f"its stop time {when} has passed; start it again with a later stop time if needed"
        )
    must_wait = job.settings.nightly.overlap == "queue"
    alerts: list[Alert] = []
    try:
        with ExitStack() as held:
            try:
                held.enter_context(
                    Warehouse(job.warehouse).only_one(
                        f"night-{job.settings.benchmark}", wait=must_wait
                    )
                )
            except WarehouseBusy as busy:
                if not is_in_progress(job):
                    return skip_night(job, str(busy).partition(";")[0])
                notice(f"skipped: the night of {job.night} is already in progress")
                return Execution(job, SKIPPED)
            alerts += _of_killed(job)
            execution = execute_flow(job, "night", is_verbose=is_verbose)
            alerts += _alerts_of(execution)
            results = None if execution.was_interrupted else _results(job)
    except BaseException as error:
        why = f"failed: {explained(error)[1]}" if isinstance(error, Exception) else "was stopped"
        _send(job, [*alerts, failure(f"the night of {job.night} {why}")])
        raise
    execution.alerts = [vars(alert) for alert in alerts]
    execution.message = _send(job, alerts, results)
    is_incomplete = any(report.has_failed or report.is_below_bar for report in execution.reports)
    if execution.outcome not in {FAILED, INTERRUPTED} and not is_incomplete:
        _ping(job)
    return execution


def _ping(job: Job) -> None:
    """Call the dead-man's switch, if one is configured, and store the result."""
    pinged = ping(job.settings.alerts)
    if pinged is None:
        return
    _store(job, [], [pinged])
    if pinged.status == "failed":
        notice(f"the dead-man's switch could not be called: {pinged.error}")


def skip_night(job: Job, why: str, outcome: str = SKIPPED) -> Execution:
    """Send an alert that a night does not take place, or goes no further; not about a night that
    lacks nothing.
    """
    if not has_work(job, "night"):
        reports = without_work(job, "night")
        return Execution(job, outcome_of(reports), reports)
    what = "was not continued" if runs_of_night(job) else "did not take place"
    alert = skipped(f"the night of {job.night} {what}: {why}")
    message = _send(job, [alert])
    return Execution(job, outcome, alerts=[vars(alert)], message=message)


def _of_killed(job: Job) -> list[Alert]:
    """Return alerts for nights that were killed since the last one: a killed night sends none
    itself.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.writing(notice):
        warehouse.verify()
        warehouse.publish()  # the very first night begins with an empty database
        killed = mark_killed(job)
    alerts = []
    for row in killed:
        if row["night"] is not None:
            line = (
                f"the night of {row['night']} was killed (run {row['run_id']}, begun"
                f" {row['started_at']:%H:%M} UTC)"
            )
            alerts.append(
                failure(
                    line,
                    {"night": row["night"]},
                    happened=f"the night of {row['night']} was killed",
                )
            )
    return alerts


def _alerts_of(execution: Execution) -> list[Alert]:
    """Return alerts for drifted judges, lower scores, low coverage, and problems that the stages
    reported.
    """
    if execution.was_interrupted:
        return [
            failure(f"the night of {execution.job.night} was stopped; what was finished is kept")
        ]
    job = execution.job
    alerts = execution.job.settings.alerts
    judges = drifted(job)
    looks = last_looks(job)
    drifting = {row["judge"] for row in judges}
    looked_at = {look["model"] for look in looks}
    compared = [each for each in comparisons(job) if each["model"] not in looked_at]
    fallen = [
        *stopping_drops(looks, drifted_judges=drifting),
        *drops(
            compared,
            least_drop=alerts.least_drop,
            alpha=alerts.alpha,
            drifted_judges=drifting,
        ),
    ]
    failed = [
        failure(warning)
        for report in execution.reports
        if report.has_failed
        for warning in report.warnings
    ]
    incomplete = _coverage_alerts(job, execution.reports)
    return [*failed, *incomplete, *drifts(judges), *fallen, *alerts_of_reports(execution.reports)]


def _coverage_alerts(job: Job, reports: Sequence[StageReport]) -> list[Alert]:
    """Return an alert for each cause of low coverage, also that of the control sets."""
    is_cut_short = any(report.is_at_budget or report.is_at_stop_time for report in reports)
    alerts: list[Alert] = []
    if any(report.stage == "coverage" and report.is_below_bar for report in reports):
        errors = _frequent_errors(job)
        stops = stops_of(job, reports)
        alerts += coverage_alerts(
            low_coverage(job), stops, is_cut_short=is_cut_short, errors=errors
        )
    if not is_cut_short:
        explained_judges = {alert.subject for alert in alerts}
        alerts += control_alerts(
            control_sets_of_night(job), job.settings.coverage.min, explained_judges
        )
    return alerts


def _frequent_errors(job: Job) -> dict[tuple[str, str], str]:
    """Return the most frequent error of the run by kind and label of the called model or judge."""
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows(sql.read("queries/nightly/frequent_errors"), {"run_id": job.run_id})
    return {(row["kind"], row["label"]): row["error"] for row in rows}


_SCORED = ("split", "model", "judge", "mean_score", "coverage", "is_below_bar")
"""Columns of the leaderboard in a message."""


def _results(job: Job) -> Results:
    """Return the scores of the night under the first judge that gave any, and the cost of all its
    runs.
    """
    is_sampled = any(model.resample == "nightly" for model in job.settings.models)
    rows = leaderboard(job, vintage=job.night if is_sampled else None)
    scores: dict[str, list[dict[str, Any]]] = {judge.label: [] for judge in job.settings.judges}
    for row in rows:
        if row["mean_score"] is not None:
            score = {name: row[name] for name in _SCORED}
            scores.setdefault(row["judge"], []).append(score)
    first_scores = next(filter(None, scores.values()), [])
    runs = runs_of_night(job)
    costs = [row["cost_usd"] for row in runs]
    cost_usd = None if None in costs else sum(costs)
    return Results(first_scores, cost_usd, sum(row["calls"] or 0 for row in runs))


def alert_refused(job: Job, error: Exception) -> None:
    """Send an alert that a night was refused before it began.

    Nothing is stored: there may be no warehouse.
    """
    job = as_night(job)
    _deliver(job, [failure(f"the night of {job.night} failed: {explained(error)[1]}")])


def alert_crashed(job: Job, why: str) -> None:
    """Send an alert that the process of a night has crashed, unless it had begun: then the next
    night sends one.
    """
    if not runs_of_night(job, outcome=RUNNING):
        _send(job, [failure(f"the night of {job.night} crashed before it began: {why}")])


def _send(job: Job, alerts: Sequence[Alert], results: Results | None = None) -> Message | None:
    """Store the alerts, send them, and store their deliveries; return the message about all of
    them, if there is any.

    The terminal shows it, and Prefect.
    """
    message = night_message(job, alerts, results) if alerts else None
    if message is not None:
        notice(f"alert: {message.title}")
        for line in message.lines:
            notice(f"  {line}")
    _store(job, alerts, [])
    _store(job, [], _deliver(job, alerts, results))
    return message


def _deliver(job: Job, alerts: Sequence[Alert], results: Results | None = None) -> list[Delivery]:
    deliveries = deliver(job.settings.alerts, alerts, job, results, history=history_of(job, alerts))
    for each in deliveries:
        if each.status == "failed":
            notice(f"could not send an alert to {each.receiver}: {each.error}")
    return deliveries


def _store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery]) -> None:
    """Store and publish the alerts; they are sent even if that fails."""
    if not alerts and not deliveries:
        return
    try:
        store(job, alerts, deliveries)
        Warehouse(job.warehouse).publish()
    except (WarehouseError, OSError) as error:
        notice(f"alerts are not stored: {explained(error)[1]}")


_JUDGE_COLUMNS = (
    "model",
    "model_config_hash",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
)
"""Columns that are equal on both sides of a comparison."""


_NAMED_OTHERWISE = {
    "model": "second_model",
    "judge": "second_judge",
    "judge_trial": "second_judge_trial",
    "n_wanted": "n_tasks_wanted",
}
"""Name of a value in an alert -> its name in a comparison."""


def comparisons(job: Job) -> list[dict[str, Any]]:
    """Return a comparison of the night with the last one for each model, split and configured
    judge.
    """
    models = {model.label for model in job.settings.models if model.resample == "nightly"}
    judges = {judge.label for judge in job.settings.judges}
    with Warehouse(job.warehouse).reader() as reader:
        pairs = [
            row
            for row in _pairs(job, reader, job.night)
            if row["model"] in models and row["judge"] in judges
        ]
        compared = [each for row in pairs for each in _differences(job, reader, row)]
    return [
        {name: each[_NAMED_OTHERWISE.get(name, name)] for name in COMPARED} for each in compared
    ]


def changes(job: Job, vintage: str | None = None) -> list[dict[str, Any]]:
    """Return the changes of each model from its last comparable vintage to its current one, under
    every judge.

    `vintage` replaces the current one. A row has the compared model runs, the split, and the
    interval and p-value of the difference (Holm-corrected over all rows). A model with one vintage
    has no row.
    """
    changed: list[dict[str, Any]] = []
    with Warehouse(job.warehouse).reader() as reader:
        chosen: dict[str, Any] = {"is_latest": True} if vintage is None else {"vintage": vintage}
        chosen |= job.key
        judged = (
            "(from leaderboard where counts_as_judge([], benchmark, dataset_revision, judge,"
            " judge_config_hash))"
        )
        shown = reader.select(
            judged, f"distinct {', '.join(_JUDGE_COLUMNS)}, vintage, split", **chosen
        )
        for current in sorted({row["vintage"] for row in shown}):
            for pair in _pairs(job, reader, current):
                identity = {"vintage": current, **{name: pair[name] for name in _JUDGE_COLUMNS}}
                # A model may have another current vintage on another split.
                splits = {row["split"] for row in shown if {**row, **identity} == row}
                if splits:
                    changed += [
                        each for each in _differences(job, reader, pair) if each["split"] in splits
                    ]
    adjusted = holm([each["p_value"] for each in changed])
    return [
        {name: each[f"second_{name}"] for name in _JUDGE_COLUMNS}
        | {
            name: each[name]
            for name in ("first_vintage", "second_vintage", "split", "ci_low", "ci_high")
        }
        | {"p_adjusted": p_adjusted}
        for each, p_adjusted in zip(changed, adjusted, strict=True)
    ]


def _pairs(job: Job, reader: Reader, night: str | None) -> list[dict[str, Any]]:
    """Return the model runs of a vintage (`night`) that can be compared with an earlier vintage."""
    given = {**job.key, "night": night}
    return [
        given | row
        for row in reader.rows(sql.read("queries/nightly/pairs"), given)
        if row["last_vintage"]
    ]


def _differences(job: Job, reader: Reader, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the differences between one model's vintage (`night`) and the one before, under one
    judge, by split.
    """
    narrowed = job.model_copy(
        update={"named_models": (row["model"],), "named_judges": (row["judge"],)}
    )
    nights = (row["last_vintage"], row["night"])
    try:
        rows = rows_of(compare(reader, Comparison(narrowed, nights, "vintage")))
    except PipelineError as error:
        notice(f"{row['model']} is not compared with {row['last_vintage']}: {error}")
        return []
    return [
        each for each in rows if all(each[f"second_{name}"] == row[name] for name in _JUDGE_COLUMNS)
    ]
