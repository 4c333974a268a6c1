"""Judging call by call."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tasks.config.settings import Job
from tasks.judge.criteria import Bench, evidence_columns, verdict_columns
from tasks.judge.judge_call import Asking
from tasks.judge.long_answers import Criterion
from tasks.llm.replies import Reply
from tasks.rules.verdict import Verdict
from tasks.run.conversations import Conversation, conversations_of
from tasks.run.missing_work import Judging, Owed, Scope, judgings, missing_verdicts, open_scope, owed_criteria
from tasks.run.part_writer import PartWriter, judge_target
from tasks.run.run_context import desk_of
from tasks.run.stage_report import StageReport
from warehouse import Warehouse


def plan_verdicts(job: Job, *, retry_failed: bool) -> list[tuple[Judging, list[Owed]]]:
    """For each judging, the responses that it owes verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        return [
            (judging, missing_verdicts(job, scope, reader, judging, retry_failed=retry_failed))
            for judging in judgings(job, scope.benchmark)
        ]


def owed_work(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> tuple[Scope, list[dict[str, Any]], dict[str, Conversation]]:
    """The scope, the criteria that some responses are owed verdicts on, and the conversations of their tasks."""
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        owed = owed_criteria(reader, judging, response_ids, retry_failed=retry_failed)
        return scope, owed, conversations_of(reader, scope, (row["task_id"] for row in owed))


async def judge_batch(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool, place: int = 0
) -> StageReport:
    """Judge what a batch of responses is owed, and write the verdicts, failed ones too.

    `place` is the batch's among all; see `Bench.judge` for the order of the calls.
    """
    desk = desk_of(job)
    scope, owed, conversations = owed_work(job, judging, response_ids, retry_failed=retry_failed)
    report = StageReport("judge")
    asking = Asking(desk.gateway("judge", judging.judge.label), judge_target(judging.judge), judging)

    def row_of(criterion: Criterion, identity: str, reply: Reply, verdict: Verdict | None) -> Mapping[str, Any]:
        columns = verdict_columns(job, scope, judging, criterion, identity, reply, verdict)
        return {**columns, "source": "judged", "import_batch": None}

    warehouse, evidence_row = Warehouse(job.warehouse), partial(evidence_columns, job, scope)
    with (
        PartWriter(warehouse, "evidence", desk.ledger) as evidence,
        PartWriter(warehouse, "verdicts", desk.ledger, evidence) as writer,
    ):
        await Bench(asking, writer, report, row_of, evidence, evidence_row).judge(owed, conversations, place)
    return report
