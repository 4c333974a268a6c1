"""Judging the control set again in a night."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sql
from tasks.config.job import Job
from tasks.console import progress
from tasks.drift.control_sets import changed_limits, control_sets, drifted, lacks_control_set
from tasks.judge.criterion import CriterionToJudge, verdict_columns, verdict_id_of, writing_verdicts
from tasks.judge.judge import judge_criteria
from tasks.llm.replies import Reply
from tasks.run.judgings import Judging
from tasks.run.missing_work import PASSING, Conversation, WantedTasks, conversations_of, wanted_tasks
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

LOST = "lost"
"""Status of a member that cannot be judged again, because something that its judge read is gone or has changed."""
_ROLE = "drift"
"""The stage, and what the run's limits and ledger know its calls as."""


@dataclass(frozen=True)
class _Missing:
    """What a control set lacks in a night: members to judge, and lost ones that are not written down yet."""

    set_id: str
    judging: Judging
    members: list[CriterionToJudge]
    newly_lost: list[CriterionToJudge]
    n_lost: int


async def judge_control_set(job: Job) -> StageReport:
    """Judge the members of the control sets that a night lacks, publish the verdicts, and report judges that drifted.

    The calls carry the night as their vintage, so that no earlier reply answers them; the verdicts are stored apart
    from all others and no score rests on them. They are made one by one also where a judge's others are left to
    provider batches. A run that is no night, and one without a control set, does nothing.
    """
    report = StageReport(_ROLE)
    if job.night is None or job.settings.drift.verdicts == 0:
        return report
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted, missing, conversations = await asyncio.to_thread(_plan, job, job.night, reader)
    totals = Counter(member.model for each in missing for member in each.members)
    if totals:
        with progress(report.stage, totals, is_quiet=job.is_quiet):
            async with open_run_context(job) as context:
                await context.ready()
                async with asyncio.TaskGroup() as group:
                    for each in missing:
                        group.create_task(_judge(job, wanted, context, each, conversations, report))
                context.add_notices(report)
    for each in missing:
        warehouse.write("control_verdicts", _lost_rows(job, wanted, each))
    await asyncio.to_thread(_see, job, wanted, warehouse)
    _report_missing(job, report, missing)
    return report


def lacks_verdicts(job: Job, reader: Reader) -> bool:
    """Return whether a night lacks a control set, or verdicts on one, failed ones that may pass included."""
    if job.night is None or job.settings.drift.verdicts == 0:
        return False
    wanted, missing, _ = _plan(job, job.night, reader)
    return lacks_control_set(job, wanted, reader) or any(each.members or each.newly_lost for each in missing)


def _plan(job: Job, night: str, reader: Reader) -> tuple[WantedTasks, list[_Missing], dict[str, Conversation]]:
    """The wanted tasks, what each control set lacks, and the conversations of the members to judge."""
    wanted, found = wanted_tasks(job, reader), []
    for judging, set_id in control_sets(job, wanted, reader):
        if set_id is not None:
            parameters = {"set_id": set_id, "night": night, "again": [*PASSING, LOST]}
            found.append((set_id, judging, reader.rows(sql.read("queries/drift/members"), parameters)))
    conversations = conversations_of(reader, wanted, (row["task_id"] for _, _, rows in found for row in rows))
    return wanted, [_missing(*each, conversations) for each in found], conversations


def _missing(
    set_id: str, judging: Judging, rows: Iterable[dict[str, Any]], conversations: Mapping[str, Conversation]
) -> _Missing:
    members, lost, newly_lost = list[CriterionToJudge](), 0, list[CriterionToJudge]()
    for row in rows:
        criterion = CriterionToJudge.of(row)
        is_there = row["is_asked_alike"] and row["title"] is not None and row["text"] is not None
        # The first verdict's identity holds all that its judge read of the response.
        if is_there and row["task_id"] in conversations and verdict_id_of(judging, criterion) == row["verdict_id"]:
            members.append(criterion)
        else:
            lost += 1
            newly_lost += [criterion] if row["stored_status"] != LOST else []
    return _Missing(set_id, judging, members, newly_lost, lost)


async def _judge(
    job: Job, wanted: WantedTasks, context: RunContext, missing: _Missing, conversations: Mapping[str, Conversation],
    report: StageReport,
) -> None:  # fmt: skip
    assert job.night is not None
    judging = replace(missing.judging, judge=missing.judging.judge.model_copy(update={"mode": "live"}))
    gateway = context.gateway(_ROLE, judging.judge.label)
    own_columns = {"set_id": missing.set_id, "judge_vintage": job.night}
    with writing_verdicts(job, wanted, judging, context.ledger, report, "control_verdicts", own_columns) as rows:
        await judge_criteria(gateway, rows, missing.members, conversations, 0, job.night)


def _lost_rows(job: Job, wanted: WantedTasks, missing: _Missing) -> list[dict[str, Any]]:
    nothing = Reply(LOST, attempts=0, error="its response, criterion or conversation is gone or has changed")
    return [
        {
            **verdict_columns(job, wanted, missing.judging, row, None, nothing, None),
            "set_id": missing.set_id,
            "judge_vintage": job.night,
        }
        for row in missing.newly_lost
    ]


def _see(job: Job, wanted: WantedTasks, warehouse: Warehouse) -> None:
    """Publish the verdicts and the control limits."""
    warehouse.publish()
    with warehouse.reader() as reader:
        warehouse.write("control_limits", changed_limits(job, wanted, reader))
    warehouse.publish()


def _report_missing(job: Job, report: StageReport, missing: Iterable[_Missing]) -> None:
    if report.rows:
        report.notes.append(f"{report.rows} verdicts of the control set judged again")
    elif report.skipped == 0 and missing:
        report.notes.append("the control set is already judged, no model call made")
    if report.skipped:
        report.notes.append(f"{report.skipped} verdicts of the control set not requested")
    report.warnings += [
        f"{each.judging.judge.label}: {each.n_lost} members of its control set are lost: their response, criterion or "
        "conversation is gone or has changed"
        for each in missing
        if each.n_lost
    ]
    report.warnings += [found.line for found in drifted(job)]
