"""Conversations: building them from turns, writing them for a judge, cleaning what a model answered.

Source of the rules: PRBench paper (arXiv 2511.11562), appendix D, and the published harness's behaviour.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from tasks.rules.records import Turn
from tasks.rules.text.characters import is_blank, shows_nothing

Message = tuple[str, str]
"""(role, content)"""

PLACES = ("<<conversation>>", "<<rubric_item>>")
"""What a judge template must contain (`quoting.py` has the places that it may contain)."""

_TAGS = "think|thinking|reasoning|reason"
_OPENED = re.compile(rf"<({_TAGS})>", re.IGNORECASE | re.ASCII)
_CLOSED = re.compile(rf"</({_TAGS})>", re.IGNORECASE | re.ASCII)
_BREAKS = re.compile(r"(?:\r?\n){3,}")


def with_references(prompt: str, reference_texts: Sequence[str]) -> str:
    """Put a turn's reference texts, numbered from 0, in front of its prompt."""
    references = "".join(f"Reference Text {i}:\n{text}\n\n" for i, text in enumerate(reference_texts))
    return references + prompt


def turn_pattern(conversation: Sequence[Turn], turns: int | None) -> str:
    """The shape of a conversation, one letter a slot (see `records.Task`); slots after the last used one are left out.

    Slots alternate: prompt 0, response 0, prompt 1, ... A blank prompt counts as used when `turns` says that there
    is a turn, or when reference texts stand in front of it.
    """
    pattern = ""
    for i, turn in enumerate(conversation):
        if not is_blank(turn.prompt):
            pattern += "u"
        else:
            is_used = bool(turn.reference_texts) or (turns is not None and i < turns)
            pattern += "e" if is_used else "-"
        pattern += "-" if is_blank(turn.response) else "a"
    return pattern.rstrip("-")


def build_messages(conversation: Sequence[Turn]) -> tuple[Message, ...]:
    """The conversation as sent: each user turn with its references in front, each assistant turn where there is one.

    No system prompt is added; one that is configured for a model is sent by the sample stage. Blank slots are passed
    over; whether the turns are whole is judged on the `turn_pattern`, not here.
    """
    messages: list[Message] = []
    for turn in conversation:
        if turn.prompt is not None and not is_blank(turn.prompt):
            messages.append(("user", with_references(turn.prompt, turn.reference_texts)))
        if turn.response is not None and not is_blank(turn.response):
            messages.append(("assistant", turn.response))
    return tuple(messages)


def said(messages: Iterable[Message]) -> str:
    """Messages as `role: content` lines."""
    return "\n\n".join(f"{role}: {content}" for role, content in messages)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill the places of a template in one pass, so that a place named inside a text stays text."""
    return re.sub("|".join(map(re.escape, values)), lambda match: values[match.group()], template)


def missing_places(template: str, places: Sequence[str] = PLACES) -> list[str]:
    """The places that a template should have and has not."""
    return [place for place in places if place not in template]


def final_text(text: str, *, omits_think_tag: bool = False) -> str:
    """What a model answered, without its thinking; three or more line breaks are made two.

    An answer that opens with thinking and never ends it, or that shows nothing to a reader, is empty.
    """
    try:
        answer = _BREAKS.sub("\n\n", without_thinking(text, omits_think_tag=omits_think_tag)).strip()
    except UnfinishedThinking:
        return ""
    return "" if shows_nothing(answer) else answer


NOTHING_SHOWN = "the reply holds no visible text beside its thinking"
"""Why an answer is empty."""


class UnfinishedThinking(ValueError):
    """A reply opens with thinking that it never ends."""


def without_thinking(text: str, *, omits_think_tag: bool = False) -> str:
    """A reply without the block of thinking that it starts with.

    A block is there only where the reply starts, after white space, with an opening tag; it ends at the first closing
    tag of that name. A tag anywhere else is text: what a model writes about must not decide what counts as its answer.
    With `omits_think_tag` (the server sends thinking without its opening tag) a reply that starts with none starts
    inside of a block, which ends at the first closing tag, if there is one.

    Raises:
        UnfinishedThinking: the block is never closed.
    """
    opened = _OPENED.match(text, len(text) - len(text.lstrip()))
    if opened is None:
        closed = _CLOSED.search(text) if omits_think_tag else None
        return text[closed.end() :] if closed else text
    name = opened[1].lower()
    closed = next((tag for tag in _CLOSED.finditer(text, opened.end()) if tag[1].lower() == name), None)
    if closed is None:
        raise UnfinishedThinking(f"<{name}> is never closed")
    return text[closed.end() :]
