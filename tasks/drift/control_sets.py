"""Control sets: which stored verdicts of a judge are judged again every night, with the limits of what is usual."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.rules.identity import digest
from tasks.rules.statistics.control import METHOD, Drifted, Night, limits
from tasks.run.judgings import Judging, judgings
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_OF_RESPONSE = 2
"""Criteria of each decision that are chosen of a response before others get their turn: few enough to spread over many
tasks, enough that the provider's cache serves the conversation."""


def control_sets(job: Job, wanted: WantedTasks, reader: Reader) -> list[tuple[Judging, str | None]]:
    """Every configured judge with the id of its control set, None where none was chosen yet.

    A judge's first repetition is the one that is watched.

    Should two runs at once have chosen one each, the older one is the judging's.
    """
    found = []
    for judging in (each for each in judgings(job, wanted.benchmark) if each.judge_trial == 1):
        key = {**wanted.key, **judging.columns}
        members = reader.select("control_set", "set_id", order="created_at, set_id", **key)
        found.append((judging, members[0]["set_id"] if members else None))
    return found


def choose_control_set(job: Job) -> StageReport:
    """Choose and publish the control set of every configured judge that has decided verdicts and no set yet.

    A set that is stored stays as it is, also when another number of verdicts is configured later or more verdicts
    are there: with other members its nights could not be compared with the earlier ones. A judge with other
    parameters or another template is another judging, and a new data-set revision asks about other tasks; each gets a
    set of its own. The configured number 0 chooses nothing.
    """
    report = StageReport("drift")
    number = job.settings.drift.verdicts
    if number == 0:
        return report
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        for judging, set_id in control_sets(job, wanted, reader):
            if set_id is None:
                rows = _chosen(job, wanted, reader, judging, number)
                warehouse.write("control_set", rows)
                report.rows += len(rows)
                report.notes.append(_note(judging, len(rows), number))
    if report.rows:
        warehouse.publish()
    return report


def lacks_control_set(job: Job, wanted: WantedTasks, reader: Reader) -> bool:
    """Return whether a configured judge has no control set, and decided verdicts to choose one from."""
    return any(
        set_id is None and _chosen(job, wanted, reader, judging, job.settings.drift.verdicts)
        for judging, set_id in control_sets(job, wanted, reader)
    )


def _note(judging: Judging, n_chosen: int, number: int) -> str:
    label = judging.judge.label
    if n_chosen == 0:
        return f"{label} has no control set: none of its verdicts is decided"
    there = "" if n_chosen == number else f" ({number} wanted, no more available)"
    return f"control set of {label}: {n_chosen} verdicts{there}"


def _chosen(job: Job, wanted: WantedTasks, reader: Reader, judging: Judging, number: int) -> list[dict[str, Any]]:
    parameters = {**wanted.key, **judging.columns, "of_response": _OF_RESPONSE, "number": number}
    found = reader.rows(sql.read("queries/drift/candidates"), parameters)
    members = sorted(row["verdict_id"] for row in found)
    own = {
        "set_id": digest("control set", wanted.key, judging.columns, members),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    return [{**row, **own} for row in found]


def changed_limits(job: Job, wanted: WantedTasks, reader: Reader) -> list[dict[str, Any]]:
    """The rows of `control_limits` that are missing or differ from what is stored.

    A night that is judged late, or in two runs, changes the limits of later nights. The bar of a night stays the one
    that was configured when it was judged.
    """
    sets = [set_id for _, set_id in control_sets(job, wanted, reader) if set_id]
    return [row for set_id in sets for row in _changed(job, reader, set_id)]


def _changed(job: Job, reader: Reader, set_id: str) -> list[dict[str, Any]]:
    stored = {row["night"]: row for row in reader.select("control_limits", set_id=set_id)}
    nights = {}
    for row in reader.select("intermediate.control_nights", "night, n_decided, n_agreeing", set_id=set_id):
        label = row["night"]
        bar = job.settings.drift.min_agreement
        if label in stored and label != job.night:
            bar = stored[label]["min_agreement"]
        nights[label] = Night(label, row["n_decided"], row["n_agreeing"], bar)
    changed = []
    for expected in limits(nights.values()):
        night = nights[expected.label]
        row = {
            "set_id": set_id, "night": expected.label, "n_decided": night.n_decided, "n_agreeing": night.n_agreeing,
            "min_agreement": night.bar, "method": METHOD, "centre": expected.centre,
            "lower_limit": expected.lower_limit, "cause": expected.cause,
        }  # fmt: skip
        if row != {name: stored.get(expected.label, {}).get(name) for name in row}:
            changed.append({**row, "created_at": datetime.now(UTC)})
    return changed


def drifted(job: Job) -> list[Drifted]:
    """The configured judges that are out of control in this night; earlier nights are in the view `judge_drift`."""
    if job.night is None:
        return []
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        sets = [set_id for _, set_id in control_sets(job, wanted, reader) if set_id]
        columns = ", ".join(each.name for each in fields(Drifted))
        rows = reader.select(
            "judge_drift", columns, order="judge", is_out_of_control=True, night=job.night, set_id=sets
        )
    return [Drifted(**row) for row in rows]
