"""Plain records of a benchmark's rows, which later stages share."""

from dataclasses import dataclass

Label = tuple[str, str]
"""A label of a task or a criterion: (kind, label), such as ("theme", "hedging")."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of a rubric.

    `weight` is None if the data has no number; `weight_text` is then the data's text. `severity` is
    the weight class, as the data names it or as the benchmark derives it from the weight. `labels`
    are further labels.
    """

    criterion_id: str
    position: int
    title: str
    category: str | None
    weight: float | None
    weight_text: str | None
    severity: str | None
    content_hash: str
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A user turn as in the data, with its reference texts and the assistant's response, if any."""

    prompt: str | None
    reference_texts: tuple[str, ...]
    response: str | None


@dataclass(frozen=True, slots=True)
class Task:
    """One benchmark item: a conversation that ends with the user, and a rubric for the response.

    `turn_pattern` is the shape of the conversation as in the row: `u` a user turn, `a` an assistant
    turn, `e` a user turn without text, `-` a gap. A complete conversation is `u`, `uau`, `uauau`,
    ... `labels` are further labels.
    """

    task_id: str
    field: str | None
    topic: str | None
    expert: str | None
    turns: int | None
    turn_pattern: str
    decision_types: tuple[str, ...]
    economic_pathways: tuple[str, ...]
    conversation: tuple[Turn, ...]
    has_reference_texts: bool
    criteria: tuple[Criterion, ...]
    canary: str | None
    conversation_id: str
    content_hash: str
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreDefinition:
    """A score as a ratio of sums over a response's criteria.

    With points p = sum(w*I), P the sum of the positive weights and N the sum of the negative ones::

        value = (p + numerator_negative * N) / (denominator_positive * P + denominator_negative * N)

    `clips_mean` sets a model's mean below zero to zero; a single response is never clipped.
    """

    score_name: str
    numerator_negative: float
    denominator_positive: float
    denominator_negative: float
    clips_mean: bool
    is_primary: bool
