"""A judge's call: the request, how its reply is read, and the reminder that is sent where it cannot be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from tasks.llm import (
    CONTEXT_LENGTH,
    EMPTY,
    OK,
    PROVIDER_ERROR,
    REDIRECTED,
    TIMEOUT,
    TOO_LARGE,
    Call,
    Reply,
    Target,
    total_usd,
)
from tasks.rules import evidence
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError, parse_verdict, reminder, reply_format
from tasks.run import Judging

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)
Criterion = Mapping[str, Any]
Evidence = tuple[str, ...]
_QUOTED_CHARS = 300


@dataclass
class PendingVerdict:
    """A criterion of one response whose verdict is missing, with the calls that were made for it before its last one.

    `found` is the evidence of each chunk of a long answer that was searched for it.
    """

    criterion: Criterion
    verdict_id: str
    replies: list[Reply] = field(default_factory=list)
    found: list[Evidence] = field(default_factory=list)


@dataclass(frozen=True)
class Question(Generic[Found_co]):
    """How a reply is read, the structured output that is requested, and the reminder after one that cannot be read."""

    read: Callable[[str], Found_co]
    shape: Mapping[str, Any]
    reminder: str


def verdict_question(judging: Judging) -> Question[Verdict]:
    """What is asked about a criterion: a verdict."""
    grading = judging.grading
    shape = reply_format(judging.judge.explanation_chars, grading)
    read = partial(parse_verdict, grading=grading, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, reminder(grading))


def evidence_question(judging: Judging) -> Question[Evidence]:
    """What is asked about a chunk of a long answer: the evidence in it."""
    shape = evidence.evidence_format(is_bounded=judging.judge.explanation_chars is not None)
    read = partial(evidence.parse_evidence, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, evidence.REMINDER)


def judge_call(
    judging: Judging, target: Target, prompt: str, cell: str, priority: tuple[int, ...] = (),
    vintage: str = BASE_VINTAGE, question: Question[Any] | None = None,
) -> Call:  # fmt: skip
    """The call that asks a judge, for a verdict unless another question is given."""
    setting = judging.judge.structured_output
    wants_shape = target.can_follow_schema if setting is None else setting
    shape = (question or verdict_question(judging)).shape if wants_shape else None
    messages = [{"role": "user", "content": prompt}]
    return Call(target, messages, cell, shape, judging.judge_trial, vintage, priority, judging.judge.mode == "batch")


def reminder_call(call: Call, reply: Reply, question: Question[Found]) -> Call:
    """The same call once more, with the reply that could not be read and a reminder; never left to a batch."""
    said = [{"role": "assistant", "content": reply.text or ""}, {"role": "user", "content": question.reminder}]
    return replace(call, messages=[*call.messages, *said], is_batched=False)


def read_reply(reply: Reply, question: Question[Found]) -> tuple[Reply, Found | None]:
    """A reply and what it says, or the reply with the reason why it cannot be read and nothing."""
    if reply.status not in {OK, EMPTY}:
        return reply, None
    try:
        return reply, question.read(reply.text or "")
    except VerdictError as error:
        cause = one_line(f"{error}; reply: {(reply.text or '')[:_QUOTED_CHARS]!r}")
        return replace(reply, status=PARSE_ERROR, error=cause), None


def together(replies: Sequence[Reply]) -> Reply:
    """The last of some replies, with the attempts and the cost of all.

    The cost is unknown when that of an answered call is; a call without an answer counts as far as its cost is known.
    """
    unanswered = {CONTEXT_LENGTH, TIMEOUT, PROVIDER_ERROR, REDIRECTED, TOO_LARGE}
    answered = [reply for reply in replies if reply.status not in unanswered]
    is_known = all(reply.cost_usd is not None for reply in answered)
    cost_usd = total_usd(replies) if is_known else None
    return replace(replies[-1], attempts=sum(reply.attempts for reply in replies), cost_usd=cost_usd)
