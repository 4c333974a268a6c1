"""Choosing the control set: which stored verdicts of a judge are judged again every night."""

from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.drift.sets import control_sets
from tasks.rules.identity import digest
from tasks.run.judgings import Judging
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_OF_RESPONSE = 2
"""Criteria of each decision that are chosen of a response before others get their turn: few enough to spread over many
tasks, enough that the provider's cache serves the conversation."""


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
        for control_set in control_sets(job, wanted, reader):
            if control_set.set_id is None:
                rows = _chosen(job, wanted, reader, control_set.judging, number)
                warehouse.write("control_set", rows)
                report.rows += len(rows)
                report.notes.append(_note(control_set.judging, len(rows), number))
    if report.rows:
        warehouse.publish()
    return report


def _note(judging: Judging, n_chosen: int, number: int) -> str:
    label = judging.judge.label
    if n_chosen == 0:
        return f"{label} has no control set: none of its verdicts is decided"
    there = "" if n_chosen == number else f" ({number} wanted, no more available)"
    return f"control set of {label}: {n_chosen} verdicts{there}"


def _chosen(job: Job, wanted: WantedTasks, reader: Reader, judging: Judging, number: int) -> list[dict[str, Any]]:
    parameters = {**wanted.key, **judging.columns, "of_response": _OF_RESPONSE, "number": number}
    found = reader.rows(sql.read("questions/drift/candidates"), parameters)
    members = sorted(row["verdict_id"] for row in found)
    own = {
        "set_id": digest("control set", wanted.key, judging.columns, members),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    return [{**row, **own} for row in found]
