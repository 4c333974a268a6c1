"""Reading a judge's reply: exactly one JSON object that says what was decided, or nothing.

Anything that is not a clear answer is a `VerdictError`. It never becomes "unmet": a failure has no value.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from tasks.rules.text import storable

MET, PARTIAL, UNMET = "met", "partial", "unmet"
DECIDED = (MET, PARTIAL, UNMET)
PARSE_ERROR = "parse_error"

_THINKING_END = re.compile(r"</(?:think|thinking|reasoning|reason)>", re.IGNORECASE)
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL | re.IGNORECASE)


def reply_format(explanation_chars: int | None) -> dict[str, Any]:
    """The structured output that a judge is asked for, with the explanation bounded where a bound is given."""
    bound = {} if explanation_chars is None else {"maxLength": explanation_chars}
    schema = {
        "type": "object",
        "properties": {"explanation": {"type": "string", **bound}, "criteria_met": {"type": "boolean"}},
        "required": ["explanation", "criteria_met"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}


class VerdictError(ValueError):
    """The reply is not a verdict; the message says why, without quoting more than a few characters of it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decided verdict: `status` is met, partial or unmet, `value` 1, 0.5 or 0."""

    status: str
    value: float
    explanation: str


def parse_verdict(reply: str) -> Verdict:
    """Read a binary verdict from a judge's reply.

    The reply is one JSON object, bare or in one Markdown fence, with an exact boolean `criteria_met` and an optional
    text `explanation`, no key twice, and nothing around it but a reasoning model's thinking tags.

    Raises:
        VerdictError: for anything else.
    """
    text = _without_leading_thinking(reply.strip())
    fenced = _FENCED.match(text)
    answer = _json_object(fenced.group(1) if fenced else text)
    met = answer.get("criteria_met")
    if not isinstance(met, bool):
        raise VerdictError(f"criteria_met is {_kind(answer, 'criteria_met')}, not true or false")
    explanation = answer.get("explanation", "")
    if not isinstance(explanation, str):
        raise VerdictError(f"explanation is {_kind(answer, 'explanation')}, not a text")
    return Verdict(MET if met else UNMET, float(met), storable(explanation))


def _without_leading_thinking(text: str) -> str:
    """What follows the first block of thinking; a block whose opening tag the server swallowed counts too.

    Tags inside the JSON object are part of what the judge says, and stay.
    """
    if text.startswith(("{", "`")):
        return text
    return _THINKING_END.split(text, maxsplit=1)[-1].strip()


def _json_object(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise VerdictError(f"not one JSON object: {error.msg} at character {error.pos}") from error
    except VerdictError:
        raise
    except ValueError as error:
        raise VerdictError("not one JSON object: a number has thousands of digits") from error
    except RecursionError as error:
        raise VerdictError("not one JSON object: nested too deeply") from error
    if not isinstance(answer, dict):
        raise VerdictError(f"not a JSON object but {type(answer).__name__}")
    return answer


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise VerdictError("a key stands twice in the JSON object")
    return result


def _no_constant(name: str) -> float:
    raise VerdictError(f"{name} is not JSON")


def _kind(answer: dict[str, Any], key: str) -> str:
    return f"a {type(answer[key]).__name__}" if key in answer else "missing"
