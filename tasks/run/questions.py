"""Asking a model: how its reply is read, and the reminder that is sent where it cannot be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Gateway,
    NotCalled,
    Reply,
    total_usd,
)
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import PARSE_ERROR, VerdictError

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)
_QUOTED_CHARS = 300


@dataclass(frozen=True)
class Question(Generic[Found_co]):
    """How a reply is read, the structured output that is requested, and the reminder after one that cannot be read."""

    read: Callable[[str], Found_co]
    shape: Mapping[str, Any]
    reminder: str


async def ask(gateway: Gateway, call: Call, question: Question[Found]) -> tuple[Reply, Found | None]:
    """Ask, and once more where the reply cannot be read; what the reply says, or None and the reply of the failure.

    Raises:
        NotCalled: the call was not made.
    """
    first = await gateway.complete(call)
    reply, found = _read(first, question)
    if reply.status != PARSE_ERROR:
        return reply, found
    try:
        second = await gateway.complete(_reminding(call, first, question))
    except NotCalled:
        return reply, None
    reply, found = _read(second, question)
    return replace(together([first, reply]), paid=first.paid + second.paid), found


def _reminding(call: Call, reply: Reply, question: Question[Found]) -> Call:
    """The same call once more, with the reply that could not be read and a reminder; live, where that is allowed."""
    said = [{"role": "assistant", "content": reply.text or ""}, {"role": "user", "content": question.reminder}]
    return replace(call, messages=[*call.messages, *said], is_batched=call.is_batched and not call.allows_live)


def _read(reply: Reply, question: Question[Found]) -> tuple[Reply, Found | None]:
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
