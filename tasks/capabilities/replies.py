"""Reading replies: a phrase or a name in one JSON object, or the vector of a phrase."""

import json
from collections.abc import Mapping
from typing import Any

from tasks.rules.text.characters import one_line, shows_nothing, storable, visible_only
from tasks.rules.verdict import VerdictError, json_object
from tasks.run.asking import Question

PHRASE, NAME = "capability", "name"
"""The key of a reply's only value."""
_MOST_CHARS = {PHRASE: 300, NAME: 120}


def reply_shape(kind: str) -> dict[str, Any]:
    """The structured output that is asked for."""
    schema = {
        "type": "object", "properties": {kind: {"type": "string"}}, "required": [kind], "additionalProperties": False,
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": {"name": kind, "strict": True, "schema": schema}}


def reminder(kind: str) -> str:
    """What is sent once, after a reply that cannot be read."""
    return f'Reply again with only the JSON object: {{"{kind}": "..."}}. The text is one short phrase.'


def read_text(reply: str, kind: str, *, omits_think_tag: bool = False) -> str:
    """The phrase or name in a reply, in one line.

    Raises:
        VerdictError: the reply is not one JSON object with exactly this text, or the text is blank or long.
    """
    answer = json_object(reply, omits_think_tag=omits_think_tag)
    text = answer.get(kind)
    if set(answer) != {kind} or not isinstance(text, str):
        raise VerdictError(f"not exactly one text {kind}")
    # Two names that differ by what nobody sees are no two names.
    text = visible_only(" ".join(storable(text).split()))
    if shows_nothing(text):
        raise VerdictError(f"{kind} is blank")
    if len(text) > _MOST_CHARS[kind]:
        raise VerdictError(f"{kind} has more than {_MOST_CHARS[kind]} characters, so it is no short phrase")
    return one_line(text)


def vector_question() -> Question[Mapping[str, Any]]:
    """What asks for a vector; a model of embeddings has no use for a shape, and a reminder changes nothing."""
    return Question(lambda reply: {"vector": _vector(reply)}, {}, "")


def _vector(reply: str) -> list[float]:
    return [float(each) for each in json.loads(reply)]
