"""Judging by a cascade: a first judge, and a second one for what the cascade's rule escalates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.judge.criteria import CriterionJudge, criterion_judge
from tasks.judge.verdict_rows import CriterionToJudge, Judged
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import Reply
from tasks.llm.request import NO_PRICES
from tasks.rules.cascades.rules import When, confidence_of, reasons_to_escalate
from tasks.rules.conversation import Message
from tasks.rules.identity import BASE_VINTAGE
from tasks.run.asking import together
from tasks.run.judgings import CascadeJudgings, Judging


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides on criteria: its first judge in each repetition that counts, then its second.

    All calls for a criterion are made for the cascade's verdict, so that its row holds what they cost. A call that one
    of the judges has made for itself is answered from the ledger.
    """

    first: Sequence[CriterionJudge]
    then: CriterionJudge
    when: When

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], messages: Sequence[Message], priority: tuple[int, ...],
        done: Callable[[Judged], None],
    ) -> None:  # fmt: skip
        """Judge the criteria of one response by the first judge, then those that are escalated by the second one.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """

        async def judged_by(judge: CriterionJudge, some: Sequence[CriterionToJudge]) -> dict[str, Judged]:
            found: list[Judged] = []
            if some:
                await judge.judge_response(some, messages, priority, found.append)
            return {each.criterion.criterion_id: each for each in found}

        first = [await judged_by(judge, criteria) for judge in self.first]
        why = {row.criterion_id: self._reasons(row, [of[row.criterion_id] for of in first]) for row in criteria}
        then = await judged_by(self.then, [row for row in criteria if why[row.criterion_id]])
        for key, reasons in why.items():
            done(self._decided([of[key] for of in (*first, then) if key in of], reasons))

    def _reasons(self, criterion: CriterionToJudge, first: Sequence[Judged]) -> list[str]:
        """Why a criterion goes to the second judge; none: the first has decided, or was not asked to the end."""
        if first[0].reply is None or any(each.reply is None for each in first):
            return []
        logprobs = first[0].reply.logprobs
        confidence = confidence_of(logprobs, self.then.owner.grading) if logprobs else None
        values = [each.verdict.value if each.verdict else None for each in first]
        return reasons_to_escalate(self.when, values, criterion.weight, criterion.category, confidence)

    def _decided(self, judged: Sequence[Judged], why: list[str]) -> Judged:
        """The verdict of the judge that decides, with what all calls for it came to; not called if one was not."""
        replies = [each.reply for each in judged if each.reply is not None]
        if len(replies) < len(judged):
            return replace(judged[0], reply=None)
        at, by = (-1, self.then) if why else (0, self.first[0])
        decision = {"decided_by": by.judging.judge.label, "escalated_because": why or None}
        return replace(judged[at], reply=in_all(replies, replies[at]), decision=decision)


async def cascade_judge(
    gateway: Gateway, cascade: CascadeJudgings, owner: Judging, vintage: str = BASE_VINTAGE
) -> CascadeJudge:
    """A cascade of the configuration."""
    first = [await criterion_judge(gateway, judging, owner, vintage) for judging in cascade.first]
    return CascadeJudge(first, await criterion_judge(gateway, cascade.then, owner, vintage), cascade.when)


def in_all(replies: Sequence[Reply], deciding: Reply) -> Reply:
    """The deciding one of some replies, with the tokens, attempts and cost of all; None where one is not known.

    Prices are there only where all have the same.
    """
    costs = together([*(each for each in replies if each is not deciding), deciding])
    names = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    counts = {name: [getattr(each, name) for each in replies] for name in names}
    tokens: dict[str, Any] = {name: None if None in of_calls else sum(of_calls) for name, of_calls in counts.items()}
    prices = deciding.prices if len({each.prices for each in replies}) == 1 else NO_PRICES
    return replace(deciding, attempts=costs.attempts, cost_usd=costs.cost_usd, prices=prices, **tokens)
