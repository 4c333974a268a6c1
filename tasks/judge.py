"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept as its own state."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from tasks.calls import PartWriter, gateway_of, judge_target, usage_columns
from tasks.conversations import conversations_of
from tasks.llm.gateway import Gateway, Target
from tasks.llm.replies import EMPTY, OK, Reply
from tasks.progress import advance
from tasks.reports import StageReport
from tasks.rules.conversation import fill_template, transcript
from tasks.rules.identity import verdict_id
from tasks.rules.text import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError, parse_verdict, reply_format
from tasks.scope import Judging, Scope, judgings, missing_verdicts, open_scope, owed_criteria
from tasks.settings import Job, Judge
from warehouse import Warehouse

REMINDER = 'Reply again with only the JSON object: {"explanation": "...", "criteria_met": true or false}.'
"""Sent once, after a reply that is not a verdict."""


def plan_verdicts(job: Job, *, retry_failed: bool) -> list[tuple[Judging, list[tuple[str, int]]]]:
    """For each judging, the responses that it owes verdicts with how many."""
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        return [
            (judging, missing_verdicts(job, scope, reader, judging, retry_failed=retry_failed))
            for judging in judgings(job, scope.benchmark)
        ]


async def judge_batch(job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool) -> StageReport:
    """Judge what a batch of responses is owed, and write the verdicts, failed ones too.

    The criteria of one response go out together: the first alone, so that the provider has the conversation in its
    cache when the others follow.
    """
    warehouse = Warehouse(job.warehouse)
    target = judge_target(judging.judge)
    gateway = gateway_of(job, "judge")
    with warehouse.reader() as reader:
        scope = open_scope(job, reader)
        owed = owed_criteria(job, scope, reader, judging, response_ids, retry_failed=retry_failed)
        conversations = conversations_of(reader, scope, (row["task_id"] for row in owed))
    report = StageReport("judge")
    with PartWriter(warehouse, "verdicts") as writer:

        async def one(criterion: Mapping[str, Any], conversation: str) -> None:
            prompt = fill_template(judging.template, conversation, criterion["title"])
            reply, verdict = await _decide(gateway, target, prompt, _format(judging.judge, target))
            row = _verdict_row(job, scope, judging, criterion, reply, verdict)
            writer.add(row)
            report.count(row["status"], row["cost_usd"], is_failure=row["value"] is None)
            advance("judge", succeeded=row["value"] is not None)

        async def all_of(criteria: list[dict[str, Any]]) -> None:
            conversation = transcript(conversations[criteria[0]["task_id"]].messages, criteria[0]["text"])
            async with gateway.conversation_slots:
                await one(criteria[0], conversation)
                async with asyncio.TaskGroup() as group:
                    for criterion in criteria[1:]:
                        group.create_task(one(criterion, conversation))

        async with asyncio.TaskGroup() as group:
            for _, criteria in groupby(owed, key=lambda row: row["response_id"]):
                group.create_task(all_of(list(criteria)))
    return report


async def _decide(
    gateway: Gateway, target: Target, prompt: str, response_format: Mapping[str, Any] | None
) -> tuple[Reply, Verdict | None]:
    """A verdict, or the reply that stands for its failure; a reply that is no verdict is asked for once more."""
    messages = [{"role": "user", "content": prompt}]
    reply = await gateway.complete(target, messages, response_format)
    for is_last in (False, True):
        if reply.status not in {OK, EMPTY}:
            return reply, None
        try:
            return reply, parse_verdict(reply.text or "")
        except VerdictError as error:
            failed = replace(reply, status=PARSE_ERROR, error=one_line(f"{error}; reply: {reply.text!r}"))
        if is_last:
            break
        again = [*messages, {"role": "assistant", "content": reply.text or ""}, {"role": "user", "content": REMINDER}]
        second = await gateway.complete(target, again, response_format)
        cost_usd = _sum(reply.cost_usd, second.cost_usd)
        reply = replace(second, attempts=reply.attempts + second.attempts, cost_usd=cost_usd)
    return failed, None


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _format(judge: Judge, target: Target) -> dict[str, Any] | None:
    wanted = target.can_follow_schema if judge.structured_output is None else judge.structured_output
    return reply_format(judge.explanation_chars) if wanted else None


def _verdict_row(
    job: Job, scope: Scope, judging: Judging, criterion: Mapping[str, Any], reply: Reply, verdict: Verdict | None
) -> dict[str, Any]:
    columns = judging.columns
    identity = verdict_id(
        criterion["response_id"], criterion["text"], criterion["criterion_id"], criterion["criterion_hash"],
        columns["judge"], columns["judge_config_hash"], columns["template_hash"], columns["grading"],
        columns["judge_trial"],
    )  # fmt: skip
    return {
        **scope.key,
        **columns,
        **usage_columns(reply),
        **{name: criterion[name] for name in ("response_id", "task_id", "criterion_id", "criterion_hash")},
        **{name: criterion[name] for name in ("model", "trial", "vintage")},
        "verdict_id": identity,
        "source": "judged",
        "import_batch": None,
        "status": verdict.status if verdict else reply.status,
        "value": verdict.value if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
