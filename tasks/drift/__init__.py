"""Judge drift: control sets of stored verdicts, which are judged again every night, and control
limits.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter

import numpy as np

from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.console import progress
from tasks.judge.criterion import CriterionToJudge, JudgedCriterion, verdict_id_of
from tasks.judge.judge import VerdictWriter, judge_criteria, verdict_row
from tasks.llm.replies import Reply
from tasks.rules.identity import digest
from tasks.rules.statistics.control import METHOD, drift_line, joint_limits, limits
from tasks.rules.statistics.intervals import Floats
from tasks.run.calls import run_all
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import (
    SETTLED,
    TEMPORARY_FAILURES,
    Conversation,
    WantedTasks,
    accepted_ends,
    conversations_of,
    wanted_tasks,
)
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse

_PURPOSE = "drift"
"""The stage, and the purpose of its calls in limits and ledger."""
_CRITERIA_OF_RESPONSE = 2
"""Number of criteria of each decision, such as met, that are chosen first from one response: few,
so that the set covers many tasks, but more than one, so that calls use the provider's cache.
"""


def control_sets(
    job: Job,
    tasks: WantedTasks,
    reader: Reader,
) -> list[tuple[JudgeConfig, str | None]]:
    """Return every configured judge with the id of its control set; None if it has no set yet.

    Only a judge's first repetition has a control set; none has one if no number is configured. If
    two runs chose sets at the same time, the older one counts.
    """
    if job.settings.drift.verdicts == 0:
        return []
    oldest_id = "first(set_id order by created_at, set_id) as set_id"
    sets = []
    for judge_config in judge_configs(job, tasks.benchmark):
        if judge_config.judge_trial == 1 and not judge_config.panel:
            key = tasks.key | judge_config.columns
            # An aggregate: one row, even without a set.
            (row,) = reader.select("control_set", oldest_id, **key)
            sets.append((judge_config, row["set_id"]))
    return sets


def choose_control_set(job: Job) -> StageReport:
    """Choose and publish a control set for every judge that has decided verdicts and no set yet.

    A stored set never changes, even if more verdicts are stored or another number is configured
    later, because nights on other members could not be compared with earlier nights. A judge with
    other parameters or another template is another judge configuration and gets its own set, as
    does each data-set revision.
    """
    report = StageReport(_PURPOSE)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        tasks = wanted_tasks(job, reader)
        for judge_config, set_id in control_sets(job, tasks, reader):
            if set_id is None:
                rows = _choose_members(job, tasks, reader, judge_config)
                warehouse.write("control_set", rows)
                report.rows += len(rows)
                label = judge_config.judge.label
                report.notes.append(
                    f"control set of {label}: {len(rows)} of {job.settings.drift.verdicts} decided"
                    " verdicts"
                )
    if report.rows:
        warehouse.publish()
    return report


def _choose_members(
    job: Job,
    tasks: WantedTasks,
    reader: Reader,
    judge_config: JudgeConfig,
) -> list[Row]:
    """Return the rows of a new control set: some of a judge's decided verdicts, if it has any."""
    parameters = {
        **tasks.key,
        **judge_config.columns,
        "of_response": _CRITERIA_OF_RESPONSE,
        "number": job.settings.drift.verdicts,
    }
    members = reader.query("queries/drift/new_members", parameters)
    verdict_ids = sorted(row["verdict_id"] for row in members)
    set_id = digest("control set", tasks.key, judge_config.columns, verdict_ids)
    columns = {"set_id": set_id, "run_id": job.run_id, "created_at": datetime.now(UTC)}
    return [row | columns for row in members]


def changed_limits(job: Job, tasks: WantedTasks, reader: Reader) -> list[Row]:
    """Return the rows of `control_limits` that are missing or differ from the stored ones.

    A night that is judged late, or in two runs, changes the limits of later nights. The bar of an
    earlier night is the one that was configured when it was judged.
    """
    created_at = datetime.now(UTC)
    changes = []
    for set_id in _set_ids(job, tasks, reader):
        stored_rows = reader.select("control_limits", set_id=set_id)
        stored_nights = {row["night"]: row for row in stored_rows}
        nights = reader.select(
            "intermediate.control_nights",
            "set_id, night, n_decided, n_agreeing",
            order="night",
            set_id=set_id,
        )
        night_limits = joint_limits(nights, _differing_by_task(reader, set_id, nights))
        for row, joint_limit in zip(nights, night_limits, strict=True):
            row["joint_limit"] = joint_limit
            row["min_agreement"] = job.settings.drift.min_agreement
            row["method"] = METHOD
            night = row["night"]
            if night in stored_nights and night != job.night:
                row["min_agreement"] = stored_nights[night]["min_agreement"]
        for row in limits(nights):
            stored_row = stored_nights.get(row["night"], {})
            if not row.items() <= stored_row.items():
                changes.append({**row, "created_at": created_at})
    return changes


def _differing_by_task(
    reader: Reader,
    set_id: str,
    nights: Sequence[Row],
) -> Floats:
    """Return the number of decisions that are not the first ones, shape (n_nights, n_tasks), in the
    order of the given nights.
    """
    rows = reader.query("queries/drift/differing_by_task", {"set_id": set_id})
    night_dates = [row["night"] for row in nights]
    task_ids = sorted({row["task_id"] for row in rows})
    differing = np.zeros((len(night_dates), len(task_ids)))
    for row in rows:
        cell = (night_dates.index(row["night"]), task_ids.index(row["task_id"]))
        differing[cell] = row["n_differing"]
    return differing


def _set_ids(job: Job, tasks: WantedTasks, reader: Reader) -> list[str]:
    return [set_id for _, set_id in control_sets(job, tasks, reader) if set_id]


def drift_rows(job: Job) -> list[Row]:
    """Return the rows of `judge_drift` on judges that are out of control in the job's night."""
    with Warehouse(job.warehouse).reader() as reader:
        return reader.select(
            "judge_drift",
            "judge, night, n_decided, agreement, centre, lower_limit, joint_limit, min_agreement,"
            " met_share, first_met_share, n_labelled, first_people_agreement, people_agreement,"
            " labels_represent, cause",
            order="judge",
            is_out_of_control=True,
            night=job.night,
            set_id=_set_ids(job, wanted_tasks(job, reader), reader),
        )


def control_sets_of_night(job: Job) -> list[Row]:
    """Return a row for each control set: its `judge`, `n_members`, and how many of these are
    decided in the job's night.
    """
    with Warehouse(job.warehouse).reader() as reader:
        set_ids = _set_ids(job, wanted_tasks(job, reader), reader)
        parameters = {"night": job.night, "sets": set_ids}
        return reader.query("queries/drift/decided_members", parameters)


LOST = "lost"
"""Status of a member that cannot be judged again: its response, criterion or conversation is
missing or has changed.
"""
_GONE = "response, criterion or conversation is gone or has changed"
"""The reason why a member is lost, in messages."""


@dataclass(frozen=True)
class MissingMembers:
    """What a night lacks of a control set, which may be nothing: all criteria of the calls to make,
    and lost members that are not recorded yet.
    """

    set_id: str
    judge_config: JudgeConfig
    criteria: list[CriterionToJudge]
    newly_lost: list[CriterionToJudge]


async def judge_control_set(job: Job) -> StageReport:
    """Judge the missing members of the control sets in a night, publish the verdicts, and report
    judges that drifted.

    Judges without a control set get one first.

    Calls have the night as their vintage, so no earlier reply is used for them, and they are live
    even if the judge uses provider batches. The verdicts are stored separately, and no score
    includes them. Outside a night nothing is done.
    """
    report = StageReport(_PURPOSE)
    warehouse = Warehouse(job.warehouse)
    if job.night is None:
        return report
    choice_report = await asyncio.to_thread(choose_control_set, job)
    with warehouse.reader() as reader:
        tasks = wanted_tasks(job, reader)
        missing_of_sets = await asyncio.to_thread(_missing_of_sets, job, tasks, reader)
    n_missing = Counter[str]()
    for missing_members in missing_of_sets:
        n_missing.update(
            criterion.model for criterion in missing_members.criteria if criterion.is_missing
        )
    if n_missing:
        with progress(report.stage, n_missing, is_quiet=job.is_quiet):
            async with open_run_context(job) as context:
                await context.get_ready()
                await run_all(
                    _judge(job, tasks, context, missing_members, report)
                    for missing_members in missing_of_sets
                )
                context.add_notices(report)
    for missing_members in missing_of_sets:
        warehouse.write("control_verdicts", _lost_rows(job, tasks, missing_members))
    await asyncio.to_thread(warehouse.publish)
    with warehouse.reader() as reader:
        warehouse.write("control_limits", changed_limits(job, tasks, reader))
    await asyncio.to_thread(warehouse.publish)
    _add_messages(job, report, missing_of_sets)
    report.add_messages(choice_report)
    return report


def lacks_control_verdicts(job: Job, reader: Reader) -> bool:
    """Return whether a night lacks a control set, or verdicts on one.

    Temporary failures count as missing.
    """
    tasks = wanted_tasks(job, reader)
    for judge_config, set_id in control_sets(job, tasks, reader):
        if set_id is None and _choose_members(job, tasks, reader, judge_config):
            return True
    return any(
        missing_members.criteria or missing_members.newly_lost
        for missing_members in _missing_of_sets(job, tasks, reader)
    )


def _missing_of_sets(job: Job, tasks: WantedTasks, reader: Reader) -> list[MissingMembers]:
    """Return what the night lacks of each control set."""
    sets = []
    task_ids = set[str]()
    for judge_config, set_id in control_sets(job, tasks, reader):
        if set_id is not None:
            parameters = {
                "set_id": set_id,
                "night": job.night,
                "temporary_failures": [*TEMPORARY_FAILURES, LOST],
                "piece_size": judge_config.piece_size,
                "rubric": ORIGINAL,
                "accepted": accepted_ends(judge_config.judge),
                "settled": SETTLED,
            }
            rows = reader.query("queries/drift/control_criteria_to_judge", parameters)
            sets.append((set_id, judge_config, rows))
            task_ids.update(row["task_id"] for row in rows)
    conversations = conversations_of(reader, tasks, task_ids) if task_ids else {}
    return [
        _missing_members(set_id, judge_config, rows, conversations)
        for set_id, judge_config, rows in sets
    ]


def _missing_members(
    set_id: str,
    judge_config: JudgeConfig,
    rows: Iterable[Row],
    conversations: Mapping[str, Conversation],
) -> MissingMembers:
    present = []
    newly_lost = []
    for row in rows:
        conversation = conversations.get(row["task_id"])
        criterion = CriterionToJudge.of(row, conversation.messages if conversation else ())
        is_unchanged = conversation is not None and _is_unchanged(row, criterion, judge_config)
        # A row that is not missing only stands beside a missing member in its call.
        if is_unchanged or not criterion.is_missing:
            present.append(criterion)
        elif row["stored_status"] != LOST:
            newly_lost.append(criterion)
    # Only calls with a missing member are made; a lost member is no reason to judge the criteria
    # beside it again.
    call_of = attrgetter("response_id", "call_index")
    calls = {call_of(criterion) for criterion in present if criterion.is_missing}
    criteria = [criterion for criterion in present if call_of(criterion) in calls]
    return MissingMembers(set_id, judge_config, criteria, newly_lost)


def _is_unchanged(
    row: Row,
    criterion: CriterionToJudge,
    judge_config: JudgeConfig,
) -> bool:
    """Return whether a member is judged on the same texts as before.

    The same id means the same criterion and the same response, because the id includes the whole
    response.
    """
    if not row["has_same_prompt"] or None in (row["criterion_text"], row["response_text"]):
        return False
    return bool(row["verdict_id"] == verdict_id_of(judge_config, criterion))


async def _judge(
    job: Job,
    tasks: WantedTasks,
    context: RunContext,
    missing_members: MissingMembers,
    report: StageReport,
) -> None:
    """Judge the criteria of a control set with live calls of the night, and store the verdicts."""
    assert job.night is not None
    with VerdictWriter(
        job,
        context,
        tasks,
        missing_members.judge_config.live,
        report,
        table_name="control_verdicts",
        table_columns={"set_id": missing_members.set_id, "judge_vintage": job.night},
    ) as writer:
        await judge_criteria(
            writer, missing_members.criteria, batch_index=0, judge_vintage=job.night
        )


def _lost_rows(job: Job, tasks: WantedTasks, missing_members: MissingMembers) -> list[Row]:
    """Return the rows of `control_verdicts` that record newly lost members."""
    table_columns = {
        "set_id": missing_members.set_id,
        "judge_vintage": job.night,
        "verdict_id": None,
    }
    failure = Reply(LOST, attempts=0, error=f"its {_GONE}")
    rows = []
    for criterion in missing_members.newly_lost:
        judged = JudgedCriterion(criterion, "", reply=failure)
        rows.append(verdict_row(job, tasks, missing_members.judge_config, judged) | table_columns)
    return rows


def _add_messages(job: Job, report: StageReport, missing_of_sets: Sequence[MissingMembers]) -> None:
    if missing_of_sets:
        skipped = f", {report.skipped} not requested" if report.skipped else ""
        report.notes.append(f"{report.rows} verdicts of the control set judged again{skipped}")
    for missing_members in missing_of_sets:
        if missing_members.newly_lost:
            label = missing_members.judge_config.judge.label
            n_lost = len(missing_members.newly_lost)
            report.warnings.append(
                f"{label}: {n_lost} members of its control set are lost: their {_GONE}"
            )
    report.warnings += map(drift_line, drift_rows(job))
