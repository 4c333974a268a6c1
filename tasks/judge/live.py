"""Judging call by call."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from tasks.calls import PartWriter, judge_target
from tasks.conversations import Conversation, conversations_of
from tasks.desk import desk_of
from tasks.endpoints import Judge
from tasks.judge.verdicts import id_of, read_verdict, verdict_row
from tasks.llm.budget import NotCalled
from tasks.llm.gateway import Gateway
from tasks.llm.replies import Reply
from tasks.llm.targets import Call, Target
from tasks.progress import advance
from tasks.reports import StageReport
from tasks.rules.conversation import fill_template, transcript
from tasks.rules.verdict import PARSE_ERROR, Verdict, reply_format
from tasks.scope import Judging, Scope, judgings, missing_verdicts, open_scope, owed_criteria
from tasks.settings import Job
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


def owed_work(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> tuple[Scope, list[dict[str, Any]], dict[str, Conversation]]:
    """The scope, the criteria that some responses are owed verdicts on, and the conversations of their tasks."""
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        owed = owed_criteria(job, scope, reader, judging, response_ids, retry_failed=retry_failed)
        return scope, owed, conversations_of(reader, scope, (row["task_id"] for row in owed))


async def judge_batch(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool, place: int = 0
) -> StageReport:
    """Judge what a batch of responses is owed, and write the verdicts, failed ones too.

    The criteria of one response go out together: the first alone, so that the provider has the conversation in its
    cache when the others follow. `place` is the batch's among all: earlier ones, and in them earlier responses, go
    first, so that calls about one conversation follow each other.
    """
    warehouse, desk = Warehouse(job.warehouse), desk_of(job)
    scope, owed, conversations = owed_work(job, judging, response_ids, retry_failed=retry_failed)
    report = StageReport("judge")
    asking = _Asking(desk.gateway("judge"), judge_target(judging.judge), judging)
    with PartWriter(warehouse, "verdicts", desk.ledger) as writer:

        async def one(criterion: Mapping[str, Any], conversation: str, priority: tuple[int, ...]) -> None:
            prompt = fill_template(judging.template, conversation, criterion["title"])
            identity = id_of(judging, criterion)
            try:
                reply, verdict = await asking.decide(prompt, identity, priority)
            except NotCalled:
                report.skipped += 1
                return
            row = verdict_row(job, scope, judging, criterion, identity, reply, verdict)
            writer.add(row, reply, is_failure=row["value"] is None)
            report.count(row["status"], row["cost_usd"], is_failure=row["value"] is None)
            advance("judge", succeeded=row["value"] is not None)

        async def all_of(number: int, criteria: list[dict[str, Any]]) -> None:
            conversation = transcript(conversations[criteria[0]["task_id"]].messages, criteria[0]["text"])
            priority = (place, number)
            await one(criteria[0], conversation, priority)
            async with asyncio.TaskGroup() as group:
                for criterion in criteria[1:]:
                    group.create_task(one(criterion, conversation, priority))

        async with asyncio.TaskGroup() as group:
            for number, (_, criteria) in enumerate(groupby(owed, key=lambda row: row["response_id"])):
                group.create_task(all_of(number, list(criteria)))
    return report


@dataclass(frozen=True)
class _Asking:
    """Asking a judge."""

    gateway: Gateway
    target: Target
    judging: Judging

    async def decide(self, prompt: str, cell: str, priority: tuple[int, ...]) -> tuple[Reply, Verdict | None]:
        """A verdict, or the reply that stands for its failure; a reply that is no verdict is asked for once more."""
        messages = [{"role": "user", "content": prompt}]
        first = await self._reply(messages, cell, priority)
        verdict, failed = read_verdict(first)
        if verdict is not None or failed.status != PARSE_ERROR:
            return failed, verdict
        again = [{"role": "assistant", "content": first.text or ""}, {"role": "user", "content": REMINDER}]
        try:
            second = await self._reply([*messages, *again], cell, priority)
        except NotCalled:
            return failed, None
        verdict, last = read_verdict(second)
        cost_usd = _sum(first.cost_usd, second.cost_usd)
        both = replace(
            last, attempts=first.attempts + second.attempts, cost_usd=cost_usd, paid=first.paid + second.paid
        )
        return both, verdict

    async def _reply(self, messages: list[dict[str, str]], cell: str, priority: tuple[int, ...]) -> Reply:
        return await self.gateway.complete(judge_call(self.judging, self.target, messages, cell, priority))


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def judge_call(
    judging: Judging, target: Target, messages: list[dict[str, str]], cell: str, priority: tuple[int, ...] = ()
) -> Call:
    """The call that asks a judge; a reminder is never left to a batch."""
    is_batched = judging.judge.mode == "batch" and len(messages) == 1
    shape = _format(judging.judge, target)
    return Call(target, messages, cell, shape, judging.judge_trial, priority=priority, is_batched=is_batched)


def _format(judge: Judge, target: Target) -> dict[str, Any] | None:
    wanted = target.can_follow_schema if judge.structured_output is None else judge.structured_output
    return reply_format(judge.explanation_chars) if wanted else None
