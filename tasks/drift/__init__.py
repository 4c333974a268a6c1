"""Judge drift: control sets of stored verdicts, which are judged again every night, and control
limits.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.console import progress
from tasks.judge.criterion import (
    CriterionToJudge,
    JudgedCriterion,
    verdict_id_of,
)
from tasks.judge.judge import VerdictRows, judge_criteria, verdict_row
from tasks.llm.replies import Reply
from tasks.rules.identity import digest
from tasks.rules.statistics.control import METHOD, drift_line, limits
from tasks.run.calls import run_all
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import (
    PASSING,
    SETTLED,
    Conversation,
    WantedTasks,
    accepted_ends,
    conversations_of,
    wanted_tasks,
)
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_PURPOSE = "drift"
"""The stage, and the purpose of its calls in limits and ledger."""
_OF_RESPONSE = 2
"""Number of criteria of each decision, such as met, that are chosen from one response: few, so that
the set covers many tasks, but more than one, so that calls use the provider's cache.
"""


def control_sets(
    job: Job, wanted: WantedTasks, reader: Reader
) -> list[tuple[JudgeConfig, str | None]]:
    """Return every configured judge with the id of its control set; None if it has no set yet.

    Only a judge's first repetition has a control set; none has one if no number is configured. If
    two runs chose sets at the same time, the older one counts.
    """
    if job.settings.drift.verdicts == 0:
        return []
    firsts = (each for each in judge_configs(job, wanted.benchmark) if each.judge_trial == 1)
    oldest = "first(set_id order by created_at, set_id) as set_id"
    return [
        (each, reader.select("control_set", oldest, **wanted.key, **each.columns)[0]["set_id"])
        for each in firsts
    ]


def choose_control_set(job: Job) -> StageReport:
    """Choose and publish a control set for every configured judge that has decided verdicts and no
    set yet.

    A stored set never changes, even if more verdicts are stored or another number is configured
    later, because nights on other members could not be compared with earlier nights. A judge with
    other parameters or another template is another judge configuration and gets its own set, as
    does each data-set revision.
    """
    report = StageReport(_PURPOSE)
    warehouse = Warehouse(job.warehouse)
    number = job.settings.drift.verdicts
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        for judge_config in (
            each for each, set_id in control_sets(job, wanted, reader) if set_id is None
        ):
            rows = _chosen(job, wanted, reader, judge_config)
            warehouse.write("control_set", rows)
            report.rows += len(rows)
            report.notes.append(
                f"control set of {judge_config.judge.label}: {len(rows)} of {number} decided"
                " verdicts"
            )
    if report.rows:
        warehouse.publish()
    return report


def _chosen(
    job: Job, wanted: WantedTasks, reader: Reader, judge_config: JudgeConfig
) -> list[dict[str, Any]]:
    number = {"of_response": _OF_RESPONSE, "number": job.settings.drift.verdicts}
    rows = reader.rows(
        sql.read("queries/drift/candidates"),
        {
            **wanted.key,
            **judge_config.columns,
            **number,
        },
    )
    set_id = digest(
        "control set", wanted.key, judge_config.columns, sorted(row["verdict_id"] for row in rows)
    )
    return [
        {
            **row,
            "set_id": set_id,
            "run_id": job.run_id,
            "created_at": datetime.now(UTC),
        }
        for row in rows
    ]


def changed_limits(job: Job, wanted: WantedTasks, reader: Reader) -> list[dict[str, Any]]:
    """Return the rows of `control_limits` that are missing or differ from the stored ones.

    A night that is judged late, or in two runs, changes the limits of later nights. The bar of an
    earlier night is the one that was configured when it was judged.
    """
    changed: list[dict[str, Any]] = []
    for set_id in _set_ids(job, wanted, reader):
        stored = {row["night"]: row for row in reader.select("control_limits", set_id=set_id)}
        nights = reader.select(
            "intermediate.control_nights", "set_id, night, n_decided, n_agreeing", set_id=set_id
        )
        for night in nights:
            is_earlier = night["night"] in stored and night["night"] != job.night
            bar = (
                stored[night["night"]]["min_agreement"]
                if is_earlier
                else job.settings.drift.min_agreement
            )
            night |= {"min_agreement": bar, "method": METHOD}
        changed += [
            row for row in limits(nights) if not row.items() <= stored.get(row["night"], {}).items()
        ]
    return [{**row, "created_at": datetime.now(UTC)} for row in changed]


def _set_ids(job: Job, wanted: WantedTasks, reader: Reader) -> list[str]:
    return [set_id for _, set_id in control_sets(job, wanted, reader) if set_id]


_DRIFTED = (
    "judge, night, n_decided, agreement, centre, lower_limit, min_agreement, met_share,"
    " first_met_share, cause"
)


def drifted(job: Job) -> list[dict[str, Any]]:
    """Return the rows of the view `judge_drift` on configured judges that are out of control in the
    job's night.
    """
    with Warehouse(job.warehouse).reader() as reader:
        given = {"night": job.night, "set_id": _set_ids(job, wanted_tasks(job, reader), reader)}
        return reader.select(
            "judge_drift", _DRIFTED, order="judge", is_out_of_control=True, **given
        )


def control_sets_of_night(job: Job) -> list[dict[str, Any]]:
    """Return the `judge` of each control set, with how many of its `n_members` are decided in the
    job's night.
    """
    with Warehouse(job.warehouse).reader() as reader:
        given = {"night": job.night, "sets": _set_ids(job, wanted_tasks(job, reader), reader)}
        return reader.rows(sql.read("queries/drift/decided_members"), given)


LOST = "lost"
"""Status of a member that cannot be judged again: its response, criterion or conversation is
missing or has changed.
"""
_GONE = "response, criterion or conversation is gone or has changed"


@dataclass(frozen=True)
class _Missing:
    """The missing part of a control set in a night: members to judge, and lost members that are not
    recorded yet.
    """

    set_id: str
    judge_config: JudgeConfig
    members: list[CriterionToJudge]
    newly_lost: list[CriterionToJudge]


async def judge_control_set(job: Job) -> StageReport:
    """Judge what a night lacks of the control sets, publish the verdicts, and report judges that
    drifted.

    Judges without a control set get one first.

    Calls have the night as their vintage, so no earlier reply is used for them, and they are live
    even if the judge uses provider batches. The verdicts are stored separately, and no score
    includes them. Outside a night nothing is done.
    """
    report = StageReport(_PURPOSE)
    warehouse = Warehouse(job.warehouse)
    if job.night is None:
        return report
    chosen = await asyncio.to_thread(choose_control_set, job)
    with warehouse.reader() as reader:
        wanted, missing = await asyncio.to_thread(_plan, job, reader)
    totals = Counter(
        member.model for each in missing for member in each.members if member.is_missing
    )
    if totals:
        with progress(report.stage, totals, is_quiet=job.is_quiet):
            async with open_run_context(job) as context:
                await context.ready()
                await run_all(_judge(job, wanted, context, each, report) for each in missing)
                context.add_notices(report)
    for each in missing:
        warehouse.write("control_verdicts", _lost_rows(job, wanted, each))
    await asyncio.to_thread(warehouse.publish)
    with warehouse.reader() as reader:
        warehouse.write("control_limits", changed_limits(job, wanted, reader))
    await asyncio.to_thread(warehouse.publish)
    _report_missing(job, report, missing)
    report.add_messages(chosen)
    return report


def lacks_verdicts(job: Job, reader: Reader) -> bool:
    """Return whether a night lacks a control set, or verdicts on one; temporary failures count as
    missing.
    """
    wanted, missing = _plan(job, reader)
    new = (each for each, set_id in control_sets(job, wanted, reader) if set_id is None)
    can_choose = any(_chosen(job, wanted, reader, each) for each in new)
    return can_choose or any(each.members or each.newly_lost for each in missing)


def _plan(job: Job, reader: Reader) -> tuple[WantedTasks, list[_Missing]]:
    """Return the wanted tasks, and what the night lacks of each control set."""
    wanted = wanted_tasks(job, reader)
    sets = []
    for judge_config, set_id in control_sets(job, wanted, reader):
        if set_id is not None:
            parameters = {
                "set_id": set_id,
                "night": job.night,
                "again": [*PASSING, LOST],
                "piece_size": judge_config.piece_size,
                "rubric": ORIGINAL,
                "accepted": accepted_ends(judge_config.judge),
                "settled": SETTLED,
            }
            sets.append(
                (set_id, judge_config, reader.rows(sql.read("queries/drift/members"), parameters))
            )
    conversations = conversations_of(
        reader, wanted, (row["task_id"] for _, _, rows in sets for row in rows)
    )
    return wanted, [_missing(*each, conversations) for each in sets]


def _missing(
    set_id: str,
    judge_config: JudgeConfig,
    rows: Iterable[dict[str, Any]],
    conversations: Mapping[str, Conversation],
) -> _Missing:
    there = list[CriterionToJudge]()
    newly_lost = list[CriterionToJudge]()
    for row in rows:
        conversation = conversations.get(row["task_id"])
        criterion = CriterionToJudge.of(row, () if conversation is None else conversation.messages)
        is_there = conversation is not None and row["has_same_prompt"]
        is_there = is_there and None not in (row["criterion_text"], row["response_text"])
        # The same id means the same criterion and the same response, because the id includes the
        # whole response.
        if not criterion.is_missing or (
            is_there and verdict_id_of(judge_config, criterion) == row["verdict_id"]
        ):
            there.append(criterion)
        elif row["stored_status"] != LOST:
            newly_lost.append(criterion)
    # Only calls with a missing member are made; a lost member is no reason to judge the criteria
    # beside it again.
    pieces = {(each.response_id, each.call_index) for each in there if each.is_missing}
    members = [each for each in there if (each.response_id, each.call_index) in pieces]
    return _Missing(set_id, judge_config, members, newly_lost)


async def _judge(
    job: Job, wanted: WantedTasks, context: RunContext, missing: _Missing, report: StageReport
) -> None:
    assert job.night is not None
    judge_config = replace(
        missing.judge_config, judge=missing.judge_config.judge.model_copy(update={"mode": "live"})
    )
    own_columns = {"set_id": missing.set_id, "judge_vintage": job.night}
    with VerdictRows(
        job, context, wanted, judge_config, report, "control_verdicts", own_columns
    ) as rows:
        await judge_criteria(rows, missing.members, 0, job.night)


def _lost_rows(job: Job, wanted: WantedTasks, missing: _Missing) -> list[dict[str, Any]]:
    own = {
        "set_id": missing.set_id,
        "judge_vintage": job.night,
        "verdict_id": None,
    }
    nothing = Reply(LOST, attempts=0, error=f"its {_GONE}")
    lost = [JudgedCriterion(row, "", reply=nothing) for row in missing.newly_lost]
    return [verdict_row(job, wanted, missing.judge_config, each) | own for each in lost]


def _report_missing(job: Job, report: StageReport, missing: Iterable[_Missing]) -> None:
    if missing:
        not_requested = f", {report.skipped} not requested" if report.skipped else ""
        report.notes.append(
            f"{report.rows} verdicts of the control set judged again{not_requested}"
        )
    report.warnings += [
        f"{each.judge_config.judge.label}: {len(each.newly_lost)} members of its control set are"
        f" lost: their {_GONE}"
        for each in missing
        if each.newly_lost
    ]
    report.warnings += list(map(drift_line, drifted(job)))
