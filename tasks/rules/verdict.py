"""The parser of a judge's reply: exactly one JSON object with the decision.

A grading is `binary` (met or not) or `ternary` (partly met counts half).
Anything that is not a clear decision is a `VerdictError`. It never becomes "unmet": a failure has no value.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.rules.conversation import UnfinishedThinking, without_thinking
from tasks.rules.text.characters import storable

MET, PARTIAL, UNMET = "met", "partial", "unmet"
DECIDED = (MET, PARTIAL, UNMET)
PARSE_ERROR = "parse_error"
BINARY, TERNARY = "binary", "ternary"
GRADINGS = (BINARY, TERNARY)
TERNARY_AS_BINARY = "ternary_as_binary"
"""Ternary verdicts read as binary ones: partly met is not met. No judge uses this grading."""
VALUES = {MET: 1.0, PARTIAL: 0.5, UNMET: 0.0}

WORDS = {"satisfied": MET, "partially satisfied": PARTIAL, "not satisfied": UNMET}
"""The words of a ternary judge."""
_BETWEEN_WORDS = re.compile(r"[ _-]+")

_DECISIONS: dict[str, tuple[str, dict[str, Any]]] = {
    BINARY: ("criteria_met", {"type": "boolean"}),
    TERNARY: ("verdict", {"type": "string", "enum": list(WORDS)}),
}
"""The key of a grading's decision in a reply, and its possible values."""

_SPACE = " \t\r\n"
"""White space of JSON; other space characters are text."""
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL | re.IGNORECASE)


def reply_format(explanation_chars: int | None, grading: str = BINARY) -> dict[str, Any]:
    """Return the structured output to request from a judge, with a bounded explanation if a bound is given."""
    bound = {} if explanation_chars is None else {"maxLength": explanation_chars}
    key, decision = _DECISIONS[grading]
    return strict_format("verdict", {"explanation": {"type": "string", **bound}, key: decision})


def strict_format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a structured output with exactly these properties."""
    schema = {"name": name, "strict": True, "schema": object_of(properties)}
    return {"type": "json_schema", "json_schema": schema}


def object_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties, all of them required."""
    required = list(properties)
    return {"type": "object", "properties": {**properties}, "required": required, "additionalProperties": False}


class VerdictError(ValueError):
    """The reply is not a verdict; the message gives the reason, with at most a few characters of the reply."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decided verdict: `status` is met, partial or unmet, `value` 1, 0.5 or 0.

    `probability` is the expected value that a decision model gives: the probability of met, plus half the probability
    of partly met. `confidence` is the probability of the value that was chosen. Each is None where it is not known.
    """

    status: str
    value: float
    explanation: str | None
    probability: float | None = None
    confidence: float | None = None


def reminder(grading: str) -> str:
    """Return the message that is sent once after a reply that is not a verdict."""
    decision = {
        BINARY: '"criteria_met": true or false',
        TERNARY: '"verdict": "satisfied", "partially satisfied" or "not satisfied"',
    }
    return f'Reply again with only the JSON object: {{"explanation": "...", {decision[grading]}}}.'


def parse_verdict(reply: str, grading: str = BINARY, *, omits_think_tag: bool = False) -> Verdict:
    """Read a verdict from a judge's reply.

    The reply is one JSON object, bare or in one Markdown fence, with the decision and an optional text `explanation`,
    no duplicate key, and nothing around it except a block of thinking before it (see `without_thinking`). The decision
    is a boolean `criteria_met` (binary), or a `verdict` that is one of the three words in any case (ternary), and its
    key occurs only once in the object.

    Raises:
        VerdictError: the reply is anything else.
    """
    return decided_verdict(
        json_object(reply, omits_think_tag=omits_think_tag, decision=_DECISIONS[grading][0]), grading
    )


def decided_verdict(decided: Mapping[str, Any], grading: str) -> Verdict:
    """Return the verdict in a JSON object (see `parse_verdict`).

    Raises:
        VerdictError: it holds none.
    """
    key = _DECISIONS[grading][0]
    given = decided.get(key)
    if grading == TERNARY:
        status = status_of(given) if isinstance(given, str) else None
    else:
        status = (MET if given else UNMET) if isinstance(given, bool) else None
    if status is None:
        allowed = "one of the three words" if grading == TERNARY else "true or false"
        raise VerdictError(f"{key} is {_kind(decided, key)}, not {allowed}")
    explanation = decided.get("explanation", "")
    if not isinstance(explanation, str):
        raise VerdictError(f"explanation is {_kind(decided, 'explanation')}, not a text")
    return Verdict(status, VALUES[status], storable(explanation))


def status_of(word: str) -> str | None:
    """Return the status for a ternary judge's word, in any case, its parts joined by spaces, `_` or `-`."""
    return WORDS.get(_BETWEEN_WORDS.sub(" ", word.strip().lower()))


def _no_constant(name: str) -> float:
    raise VerdictError(f"{name} is not JSON")


def json_object(reply: str, *, omits_think_tag: bool = False, decision: str | None = None) -> dict[str, Any]:
    """Return the one JSON object of a reply, bare or in one Markdown fence; leading thinking is removed.

    Raises:
        VerdictError: it is anything else, a key appears twice, or more than one object has the key of the decision.
    """
    objects: list[dict[str, Any]] = []

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(dict(pairs))
        if len(objects[-1]) != len(pairs):
            raise VerdictError("a key appears twice")
        return objects[-1]

    text = json_text(reply, omits_think_tag=omits_think_tag)
    try:
        decided = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # Python also refuses a number with thousands of digits
        raise VerdictError(f"not one JSON object: {error}") from error
    if not isinstance(decided, dict):
        raise VerdictError(f"not a JSON object but {type(decided).__name__}")
    if sum(decision in each for each in objects) > 1:
        raise VerdictError(f"{decision} appears in more than one place")
    return decided


def json_text(reply: str, *, omits_think_tag: bool = False, opening: str = "{") -> str:
    """Return a reply without leading thinking and without the Markdown fence around it.

    `opening` is the character with which the JSON begins.

    Raises:
        VerdictError: the thinking never ends.
    """
    # JSON is no thinking, and a text in it may name a tag.
    is_bare = reply.lstrip(_SPACE).startswith((opening, "{", "`"))
    try:
        text = without_thinking(reply, omits_think_tag=omits_think_tag and not is_bare).strip(_SPACE)
    except UnfinishedThinking as error:
        raise VerdictError(str(error)) from error
    fenced = _FENCED.match(text)
    return fenced.group(1) if fenced else text


def _kind(decided: Mapping[str, Any], key: str) -> str:
    return f"a {type(decided[key]).__name__}" if key in decided else "missing"


Tokens = Sequence[tuple[str, float]]
"""The tokens of a reply with their log-probabilities."""
_BINARY_DECISION = re.compile(r'(?<!\\)"criteria_met"\s*:\s*(true|false)')
_TERNARY_DECISION = re.compile(r'(?<!\\)"verdict"\s*:\s*"([^"\\]*)"')


def confidence_of(tokens: Tokens, grading: str) -> float | None:
    """Return the probability of the decision that the judge wrote, from 0 to 1.

    It is the probability of the tokens that contain the decision: the value after the last `"criteria_met":` (binary)
    or the word after the last `"verdict":` (ternary); an escaped key is a quotation. None if there is no such value, or
    a probability is missing.
    """
    text = "".join(token for token, _ in tokens)
    matches = list((_TERNARY_DECISION if grading == TERNARY else _BINARY_DECISION).finditer(text))
    if not matches:
        return None
    start, end = matches[-1].span(1)
    total, position = 0.0, 0
    for token, logprob in tokens:
        if position < end and position + len(token) > start:
            total += logprob
        position += len(token)
    return math.exp(total) if math.isfinite(total) and total <= 1e-6 else None
