"""Panels: judges whose verdicts are the majority of other judges' verdicts, without a call."""

from collections.abc import Mapping

from tasks.config.job import Job
from tasks.rules.identity import verdict_id
from tasks.rules.panels import majority_value
from tasks.rules.verdict import STATUSES
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import WantedTasks, response_texts, wanted_tasks
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import TABLES, Reader, Row, Warehouse

NO_MAJORITY = "no_majority"
"""The status of a criterion on which no value has a majority of the members."""
_ROWS_OF_PART = 10_000


def lacks_panel_verdicts(job: Job, reader: Reader) -> bool:
    """Return whether a panel has not counted the votes on a criterion (see `count_votes`)."""
    tasks = wanted_tasks(job, reader)
    return any(_new_decisions(reader, tasks, panel) for panel in _panels(job, tasks))


def count_votes(job: Job) -> StageReport:
    """Store and publish the verdicts of all panels on criteria that all their members were asked
    about, and at least one decided.
    """
    report = StageReport("judge")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        tasks = wanted_tasks(job, reader)
        for judge_config in _panels(job, tasks):
            decisions = _new_decisions(reader, tasks, judge_config)
            # In parts, so that few response texts are in memory at a time.
            for start in range(0, len(decisions), _ROWS_OF_PART):
                part = decisions[start : start + _ROWS_OF_PART]
                texts = response_texts(reader, {row["response_id"] for row in part})
                rows = [_verdict_row(job, tasks, judge_config, row, texts) for row in part]
                warehouse.write("verdicts", rows)
            if decisions:
                report.rows += len(decisions)
                label = judge_config.judge.label
                report.notes.append(f"{len(decisions)} criteria counted for {label}")
    if report.rows:
        warehouse.publish()
    return report


def _panels(job: Job, tasks: WantedTasks) -> list[JudgeConfig]:
    return [config for config in judge_configs(job, tasks.benchmark) if config.panel]


def _new_decisions(
    reader: Reader,
    tasks: WantedTasks,
    judge_config: JudgeConfig,
) -> list[Row]:
    """Return the criteria on which a panel's verdict is new, with their votes and its `value`."""
    parameters = {
        **tasks.key,
        **judge_config.columns,
        "members": [member.columns for member in judge_config.panel],
    }
    decisions = []
    for row in reader.query("queries/panels/votes", parameters):
        row["value"] = majority_value(row["votes"])
        if row["value"] is not None or not row["is_counted"]:
            decisions.append(row)
    return decisions


def _verdict_row(
    job: Job,
    tasks: WantedTasks,
    judge_config: JudgeConfig,
    row: Row,
    texts: Mapping[str, str],
) -> Row:
    """Return a verdict; its cost is NULL, because the members' verdicts have it."""
    value = row["value"]
    id_columns = {name: row[name] for name in ("response_id", "criterion_id", "criterion_hash")}
    verdict = {
        **dict.fromkeys(TABLES["verdicts"].columns),
        **call_columns(job, NO_CALL),
        **tasks.key,
        **judge_config.columns,
        **id_columns,
        "verdict_id": verdict_id(
            response_text=texts[row["response_id"]], **id_columns, **judge_config.columns
        ),
        "source": "counted",
        "may_hide_failures": False,
        "status": NO_MAJORITY if value is None else STATUSES[value],
        "value": value,
    }
    for name in ("task_id", "model", "trial", "vintage", "members_usd"):
        verdict[name] = row[name]
    return verdict
