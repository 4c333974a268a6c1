"""What a log of another harness says, in the same words for all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.rules.conversation import Message
from tasks.rules.verdict import PARSE_ERROR

PRIMARY = "score"
"""The score that benchmarks of this kind rank by: points over positive points."""
MIN_NORMALIZED = "min_normalized"


@dataclass(frozen=True)
class Decision:
    """A decision on one criterion: `value` 1, 0.5 or 0, or None and the `status` of a failure.

    `criterion` is an id or a criterion's exact text, `text` its text beside an id that may be the harness's own; where
    a log names none, `position` is the place in the rubric.
    With `is_guess` the name may be something else than a criterion, and then it is no decision. `usage` are columns of
    a verdict. With `is_reordered` decisions do not stand in the order of the rubric.
    """

    criterion: str | None
    value: float | None
    position: int | None = None
    status: str = PARSE_ERROR
    explanation: str | None = None
    error: str | None = None
    weight: float | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    is_guess: bool = False
    text: str | None = None
    is_reordered: bool = False


@dataclass(frozen=True)
class Grading:
    """What a judge decided on an answer, and the scores that the harness made of it, by our name.

    `may_hide_failures`: whether the harness stores a failed judge call as a decision; None where that is not known.
    `scorer` is whose scores these are, where a harness reports means by scorer.
    """

    judge: str | None
    decisions: Sequence[Decision]
    judge_trial: int = 1
    may_hide_failures: bool | None = None
    own_scores: Mapping[str, float] = field(default_factory=dict)
    scorer: str = ""


@dataclass(frozen=True)
class Answer:
    """A model's answer to a conversation, or the failure in its place (`text` None, `status` and `error`).

    The conversation is `messages`, or `transcript`: one text of `role: content` turns that ends with the answer.
    `failure_texts` are texts that the harness stores where a call failed. `usage` are columns of a response; `group`
    is the part of the data set that the harness reports on; `scores_together` are the scores that the harness made of
    all gradings together.
    """

    where: str
    model: str | None
    task_id: str | None
    text: str | None
    gradings: Sequence[Grading] = ()
    trial: int | None = None
    messages: Sequence[Message] | None = None
    transcript: str | None = None
    status: str | None = None
    error: str | None = None
    failure_texts: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    scores_together: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Mean:
    """A mean that the harness reports: of which model, part and scorer; its name there and ours; its `decimals`."""

    model: str | None
    name: str
    score_name: str
    value: float
    group: str = ""
    decimals: int | None = None
    scorer: str = ""


@dataclass(frozen=True)
class Log:
    """All of a log. `title` is what wrote it."""

    title: str
    answers: Sequence[Answer]
    means: Sequence[Mean] = ()
    notes: Sequence[str] = ()


def numbered(answers: Iterable[Answer]) -> list[Answer]:
    """Answers with their trials: those without one are counted by model and task, in their order."""
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for answer in answers:
        place = (answer.model, answer.task_id, tuple(answer.messages or ()))
        seen[place] = seen.get(place, 0) + 1
        found.append(answer if answer.trial is not None else replace(answer, trial=seen[place]))
    return found
