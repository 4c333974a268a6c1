"""Reading a reviewer's reply: exactly one JSON object with an answer to each check, or nothing.

Anything that is not a clear answer is a `VerdictError`. It never becomes "fails": a failure has no value.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tasks.rules.text.characters import storable
from tasks.rules.verdict import VerdictError, json_object

CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
"""What is asked about a criterion (`prompts/analyses/review_v1.txt` says what each means); true is good."""
_KEYS = {"reason", "passes"}
_NUL = "\0"
REMINDER = (
    "Reply again with only the JSON object. Its keys are "
    + ", ".join(f'"{name}"' for name in CHECKS)
    + '; the value of each is {"reason": "...", "passes": true or false}.'
)


class Finding(NamedTuple):
    """What a reviewer says on one check of a criterion."""

    name: str
    passes: bool
    reason: str


def reply_shape() -> Mapping[str, Any]:
    """The structured output that a reviewer is asked for."""
    finding = _object({"reason": {"type": "string"}, "passes": {"type": "boolean"}})
    schema = _object(dict.fromkeys(CHECKS, finding))
    return {"type": "json_schema", "json_schema": {"name": "review", "strict": True, "schema": schema}}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def reader(*, omits_think_tag: bool = False) -> Callable[[str], list[Finding]]:
    """A reader of replies; `omits_think_tag` as in `parse_verdict`."""
    return lambda reply: read_findings(reply, omits_think_tag=omits_think_tag)


def read_findings(reply: str, *, omits_think_tag: bool = False) -> list[Finding]:
    """The findings in a reply, one a check in the order of `CHECKS`.

    The reply is one JSON object, bare or in one Markdown fence, with exactly the checks as keys. The value of each is
    an object with an exact boolean `passes` and a text `reason`, which must not be blank where the check fails.

    Raises:
        VerdictError: for anything else.
    """
    answer = json_object(reply, omits_think_tag=omits_think_tag)
    if unknown := sorted(answer.keys() - set(CHECKS)):
        raise VerdictError(f"{unknown[0][:40]!r} is no check")
    return [_finding(name, answer) for name in CHECKS]


def _finding(name: str, answer: Mapping[str, Any]) -> Finding:
    found = answer.get(name)
    if not isinstance(found, dict) or found.keys() - _KEYS:
        is_there = f"a {type(found).__name__} that is not reason and passes" if name in answer else "missing"
        raise VerdictError(f"{name} is {is_there}")
    passes, reason = found.get("passes"), found.get("reason", "")
    if not isinstance(passes, bool):
        raise VerdictError(f"passes of {name} is {_kind(found, 'passes')}, not true or false")
    if not isinstance(reason, str):
        raise VerdictError(f"reason of {name} is {_kind(found, 'reason')}, not a text")
    if not passes and not reason.strip():
        raise VerdictError(f"{name} fails without a reason")
    return Finding(name, passes, storable(reason).replace(_NUL, "\N{REPLACEMENT CHARACTER}"))


def _kind(found: Mapping[str, Any], key: str) -> str:
    return f"a {type(found[key]).__name__}" if key in found else "missing"
