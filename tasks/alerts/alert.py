"""An alert: one thing about a night that somebody must know."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tasks.llm import redacted, safe
from tasks.rules.text.characters import one_line, storable

Kind = Literal["failure", "skipped", "budget", "stop_time", "judge_drift", "score_drop", "coverage", "quality"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of alerts in the order in which a message shows them: what ended a night before what it found."""
_LINE_CHARS = 1_000


@dataclass(frozen=True)
class Alert:
    """One thing about a night that somebody must know.

    Names and errors in it may come from anywhere: an alert holds them as text of one line without this process's
    secrets, and as values that JSON has.

    Attributes:
        subject: label of the model or judge that it is about; empty for the night itself.
        line: a sentence for people, with its numbers.
        facts: the same for machines.
    """

    kind: Kind
    subject: str
    line: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", safe(self.subject))
        object.__setattr__(self, "line", one_line(redacted(storable(self.line)), _LINE_CHARS))
        object.__setattr__(self, "facts", _plain(self.facts))

    @property
    def as_json(self) -> dict[str, Any]:
        """The alert as JSON has it."""
        return {"kind": self.kind, "subject": self.subject, "line": self.line, "facts": self.facts}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a number that is none becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return redacted(storable(str(value)))
