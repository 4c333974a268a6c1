"""Panels: judges whose verdicts are the majority of other judges' verdicts, without a call."""

from collections.abc import Iterator, Mapping
from typing import Any

import sql
from tasks.config.job import Job
from tasks.rules.identity import verdict_id
from tasks.rules.panels import majority_value
from tasks.rules.verdict import STATUSES
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import TABLES, Reader, Warehouse

NO_MAJORITY = "no_majority"
"""The status of a criterion on which no value has a majority of the members."""


def lacks_panel_verdicts(job: Job, reader: Reader) -> bool:
    """Return whether all members have decided something that their panel has not counted yet."""
    tasks = wanted_tasks(job, reader)
    return any(
        any(_new_rows(job, reader, tasks, judge_config)) for judge_config in _panels(job, tasks)
    )


def count_votes(job: Job) -> StageReport:
    """Store and publish the verdicts of all panels on criteria that their members have decided."""
    report = StageReport("judge")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        tasks = wanted_tasks(job, reader)
        for judge_config in _panels(job, tasks):
            rows = list(_new_rows(job, reader, tasks, judge_config))
            warehouse.write("verdicts", rows)
            if rows:
                report.rows += len(rows)
                report.notes.append(f"{len(rows)} verdicts of {judge_config.judge.label} by vote")
    if report.rows:
        warehouse.publish()
    return report


def _panels(job: Job, tasks: WantedTasks) -> list[JudgeConfig]:
    return [config for config in judge_configs(job, tasks.benchmark) if config.panel]


def _new_rows(
    job: Job,
    reader: Reader,
    tasks: WantedTasks,
    judge_config: JudgeConfig,
) -> Iterator[dict[str, Any]]:
    """Yield the verdicts of a panel that are not stored yet."""
    parameters = {
        **tasks.key,
        **judge_config.columns,
        "members": [member.columns for member in judge_config.panel],
    }
    for row in reader.rows(sql.read("queries/panels/votes"), parameters):
        value = majority_value(row["votes"])
        if value is not None or not row["is_counted"]:
            yield _verdict_row(job, tasks, judge_config, row, value)


def _verdict_row(
    job: Job,
    tasks: WantedTasks,
    judge_config: JudgeConfig,
    row: Mapping[str, Any],
    value: float | None,
) -> dict[str, Any]:
    """Return a verdict; its cost is NULL, because the members' verdicts have it."""
    id_columns = {name: row[name] for name in ("response_id", "criterion_id", "criterion_hash")}
    decision = {
        **dict.fromkeys(TABLES["verdicts"].columns),
        **call_columns(job, NO_CALL),
        **tasks.key,
        **judge_config.columns,
        **id_columns,
        "verdict_id": verdict_id(
            response_text=row["response_text"], **id_columns, **judge_config.columns
        ),
        "source": "counted",
        "may_hide_failures": False,
        "status": NO_MAJORITY if value is None else STATUSES[value],
        "value": value,
    }
    for name in ("task_id", "model", "trial", "vintage", "members_usd"):
        decision[name] = row[name]
    return decision
