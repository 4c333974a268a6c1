"""Asking a judge: one call, its reply read strictly, and asked for once more where it is not what was asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from tasks.llm.gateway import Gateway
from tasks.llm.ledger.entries import total_usd
from tasks.llm.limits.budget import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, OK, PROVIDER_ERROR, REDIRECTED, TIMEOUT, TOO_LARGE, Reply
from tasks.llm.request import Call, Target
from tasks.rules import evidence
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError, parse_verdict, reminder, reply_format
from tasks.run.missing_work import Judging

Found = TypeVar("Found")
_QUOTED_CHARS = 300


@dataclass(frozen=True)
class Question(Generic[Found]):
    """How a reply is read, the structured output that is asked for, and what is said after one that cannot be read."""

    read: Callable[[str], Found]
    shape: Mapping[str, Any]
    reminder: str


@dataclass(frozen=True)
class Asking:
    """Asking a judge. Another `vintage` makes other calls, which no earlier reply answers."""

    gateway: Gateway
    target: Target
    judging: Judging
    vintage: str = BASE_VINTAGE

    async def decide(
        self, prompt: str, cell: str, priority: tuple[int, ...], *, is_live: bool = False
    ) -> tuple[Reply, Verdict | None]:
        """A verdict, or the reply that stands for its failure."""
        return await self._asked(_verdict(self.judging), prompt, cell, priority, is_live=is_live)

    async def search(self, prompt: str, cell: str, priority: tuple[int, ...]) -> tuple[Reply, tuple[str, ...] | None]:
        """The evidence in a part of an answer, or the reply that stands for the failure; never left to a batch."""
        shape = evidence.evidence_format(is_bounded=self.judging.judge.explanation_chars is not None)
        read = partial(evidence.parse_evidence, omits_think_tag=self.judging.judge.omits_think_tag)
        question = Question(read, shape, evidence.REMINDER)
        return await self._asked(question, prompt, cell, priority, is_live=True)

    async def _asked(
        self, question: Question[Found], prompt: str, cell: str, priority: tuple[int, ...], *, is_live: bool
    ) -> tuple[Reply, Found | None]:
        """What a reply says; one that cannot be read is asked for once more."""
        messages = [{"role": "user", "content": prompt}]
        call = judge_call(self.judging, self.target, messages, cell, priority, self.vintage, question.shape)
        first = await self.gateway.complete(replace(call, is_batched=call.is_batched and not is_live))
        outcome = _read(first, question)
        if outcome[0].status != PARSE_ERROR:
            return outcome
        messages += [
            {"role": "assistant", "content": first.text or ""}, {"role": "user", "content": question.reminder},
        ]  # fmt: skip
        try:
            second = await self.gateway.complete(replace(call, messages=messages, is_batched=False))
        except NotCalled:
            return outcome
        again = _read(second, question)
        return replace(together([first, again[0]]), paid=first.paid + second.paid), again[1]


def judge_call(
    judging: Judging, target: Target, messages: list[dict[str, str]], cell: str, priority: tuple[int, ...] = (),
    vintage: str = BASE_VINTAGE, shape: Mapping[str, Any] | None = None,
) -> Call:  # fmt: skip
    """The call that asks a judge; the structured output is that of a verdict, unless another is given."""
    asked = judging.judge.structured_output
    wants_shape = target.can_follow_schema if asked is None else asked
    wanted = (shape or _verdict(judging).shape) if wants_shape else None
    return Call(
        target, messages, cell, wanted, judging.judge_trial, vintage, priority, judging.judge.mode == "batch"
    )  # fmt: skip


def together(replies: Sequence[Reply]) -> Reply:
    """The last of some replies, with the attempts and the cost of all.

    The cost is unknown when that of an answered call is; a call without an answer counts as far as its cost is known.
    """
    unanswered = {CONTEXT_LENGTH, TIMEOUT, PROVIDER_ERROR, REDIRECTED, TOO_LARGE}
    answered = [reply for reply in replies if reply.status not in unanswered]
    is_known = all(reply.cost_usd is not None for reply in answered)
    cost_usd = total_usd(replies) if is_known else None
    return replace(replies[-1], attempts=sum(reply.attempts for reply in replies), cost_usd=cost_usd)


def _verdict(judging: Judging) -> Question[Verdict]:
    grading = judging.grading
    shape = reply_format(judging.judge.explanation_chars, grading)
    read = partial(parse_verdict, grading=grading, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, reminder(grading))


def _read(reply: Reply, question: Question[Found]) -> tuple[Reply, Found | None]:
    """A reply and what it says, or the reply with the reason why it cannot be read and nothing."""
    if reply.status not in {OK, EMPTY}:
        return reply, None
    try:
        return reply, question.read(reply.text or "")
    except VerdictError as error:
        cause = one_line(f"{error}; reply: {(reply.text or '')[:_QUOTED_CHARS]!r}")
        return replace(reply, status=PARSE_ERROR, error=cause), None
