"""Judging by a cascade: a first judge for all criteria of a response, a second one for those that are escalated."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.judge.criteria import ContextFit, CriterionJudge, by_response, context_fit_of
from tasks.judge.verdict_rows import NO_CASCADE, Collected, Criterion, Said, VerdictRows, key_of
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import Reply
from tasks.llm.request import NO_PRICES
from tasks.rules.cascades.rules import confidence_of, reasons_to_escalate
from tasks.rules.conversation import Message
from tasks.run.asking import together
from tasks.run.judgings import CascadeJudgings, Judging, judge_target
from tasks.run.missing_work import Conversation


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides on criteria.

    All calls for a criterion are made for the cascade's verdict, so that its row holds what they cost. A call that one
    of the judges has made for itself is answered from the ledger.
    """

    gateway: Gateway
    cascade: CascadeJudgings
    rows: VerdictRows
    vintage: str

    async def judge(self, criteria: Sequence[Criterion], conversations: Mapping[str, Conversation], place: int) -> None:
        """Judge criteria that are in the order of their responses: each response by the first judge, then the second.

        The calls of one judge about one response follow each other, so that its provider has the conversation cached.
        """
        fits = {
            judging.judge.label: await asyncio.to_thread(context_fit_of, judging, judge_target(judging.judge))
            for judging in (self.cascade.first[0], self.cascade.then)
        }
        async with asyncio.TaskGroup() as group:
            for number, of_response in enumerate(by_response(criteria)):
                messages = conversations[of_response[0]["task_id"]].messages
                group.create_task(self._judge_response(of_response, messages, fits, (place, number)))

    async def _judge_response(
        self, criteria: Sequence[Criterion], messages: Sequence[Message], fits: Mapping[str, ContextFit | None],
        priority: tuple[int, ...],
    ) -> None:  # fmt: skip
        async def asked(judging: Judging, rows: Sequence[Criterion]) -> Collected:
            return await self._ask(judging, rows, messages, fits[judging.judge.label], priority)

        first = [await asked(judging, criteria) for judging in self.cascade.first]
        said = {key: [each.said[key] for each in first if key in each.said] for key in map(key_of, criteria)}
        why = {key_of(row): self._reasons(row, said[key_of(row)]) for row in criteria}
        then = await asked(self.cascade.then, [row for row in criteria if why[key_of(row)]])
        for key, calls in said.items():
            last = then.said.get(key)
            if len(calls) < len(first) or (why[key] and last is None):
                self.rows.skip()
            elif last is None:
                self._settle(calls[0], calls, first[0], None)
            else:
                self._settle(last, [*calls, last], then, why[key])

    async def _ask(
        self, judging: Judging, criteria: Sequence[Criterion], messages: Sequence[Message], fit: ContextFit | None,
        priority: tuple[int, ...],
    ) -> Collected:  # fmt: skip
        """What a judge says about criteria of one response."""
        collected = Collected(self.rows.judging)
        if criteria:
            judge = CriterionJudge(self.gateway, judge_target(judging.judge), judging, collected, self.vintage)
            await judge.judge_response(criteria, messages, fit, priority)
        return replace(collected, judging=judging)

    def _reasons(self, row: Criterion, first: Sequence[Said]) -> list[str]:
        """Why a criterion goes to the second judge; none: the first has decided, or was not asked to the end."""
        if len(first) < len(self.cascade.first):
            return []
        logprobs = first[0].reply.logprobs
        confidence = confidence_of(logprobs, self.rows.judging.grading) if logprobs else None
        values = [said.value for said in first]
        return reasons_to_escalate(self.cascade.when, values, row["weight"], row["category"], confidence)

    def _settle(self, said: Said, calls: Sequence[Said], by: Collected, why: list[str] | None) -> None:
        """Write a verdict of the cascade, with what all calls for it came to and the evidence that it rests on."""
        for pending, chunk, reply, found in by.evidence:
            if pending.verdict_id == said.pending.verdict_id:
                self.rows.add_evidence(pending, chunk, reply, found)
        decision = {**NO_CASCADE, "decided_by": by.judging.judge.label, "escalated_because": why}
        self.rows.settle(said.pending, in_all([each.reply for each in calls], said.reply), said.verdict, decision)


def in_all(replies: Sequence[Reply], deciding: Reply) -> Reply:
    """The deciding one of some replies, with the tokens, attempts and cost of all; None where one is not known.

    Prices are there only where all have the same.
    """
    costs = together([*(each for each in replies if each is not deciding), deciding])
    tokens = {
        name: _sum([getattr(each, name) for each in replies])
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    }
    prices = deciding.prices if len({each.prices for each in replies}) == 1 else NO_PRICES
    return replace(deciding, attempts=costs.attempts, cost_usd=costs.cost_usd, prices=prices, **tokens)


def _sum(numbers: Sequence[int | None]) -> Any:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
