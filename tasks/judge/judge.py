"""Judging call by call."""

from collections.abc import Sequence
from typing import Any

from tasks.config import Job
from tasks.judge.cascade import judge_criteria
from tasks.judge.verdict_rows import writing_verdicts
from tasks.run import (
    Conversation,
    Judging,
    MissingVerdicts,
    StageReport,
    WantedTasks,
    conversations_of,
    judgings,
    missing_criteria,
    missing_verdicts,
    run_context_of,
    wanted_tasks,
)
from warehouse import Warehouse


def plan_verdicts(job: Job, *, retry_failed: bool) -> list[tuple[Judging, list[MissingVerdicts]]]:
    """For each judging, the responses without all of its verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        return [
            (judging, missing_verdicts(job, wanted, reader, judging, retry_failed=retry_failed))
            for judging in judgings(job, wanted.benchmark)
        ]


def criteria_to_judge(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> tuple[WantedTasks, list[dict[str, Any]], dict[str, Conversation]]:
    """The wanted tasks, the criteria of some responses without a verdict, and the conversations of their tasks."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        missing = missing_criteria(reader, judging, response_ids, retry_failed=retry_failed)
        return wanted, missing, conversations_of(reader, wanted, (row["task_id"] for row in missing))


async def judge_responses(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool, place: int = 0
) -> StageReport:
    """Make the verdicts that a batch of responses lacks, and write them, failed ones too.

    `place` is the batch's among all; see `CriterionJudge.judge` for the order of the calls.
    """
    context = run_context_of(job)
    wanted, criteria, conversations = criteria_to_judge(job, judging, response_ids, retry_failed=retry_failed)
    report = StageReport("judge")
    gateway = context.gateway("judge", judging.judge.label)
    own_columns = {"source": "judged", "import_batch": None, "may_hide_failures": False}
    with writing_verdicts(job, wanted, judging, context.ledger, report, "verdicts", own_columns) as rows:
        await judge_criteria(gateway, rows, criteria, conversations, place)
    return report
