"""Readers of values in rows from JSON, Parquet or the hub, where a missing value is None or NaN.

The module also builds tasks and criteria from rows.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any

from tasks.benchmarks.base import DataRow, RowError
from tasks.rules.content import content_of
from tasks.rules.conversation import build_messages, turn_pattern
from tasks.rules.identity import conversation_id, criterion_hash, digest
from tasks.rules.records import Criterion, Label, Task, Turn
from tasks.rules.text.characters import one_line, shows_nothing, storable
from tasks.rules.text.json_text import read_json

_hashed_values = attrgetter("criterion_id", "title", "weight", "weight_text", "category", "labels")
"""Gets the parts of a criterion that the content hash of its task includes, in this order."""


def criterion_from(
    criterion_id: str,
    position: int,
    title: str | None,
    weight: Any,
    *,
    category: str | None = None,
    severity: str | None = None,
    labels: Sequence[Label] = (),
) -> Criterion:
    """Return a criterion; `weight` is the value in the data, which may not be a number.

    A title of invisible characters is empty.
    """
    number = as_number(weight)
    weight_text = None
    if number is None and weight is not None:
        weight_text = storable(str(weight))
    if title is None or (title.strip() and shows_nothing(title)):
        title = ""
    return Criterion(
        criterion_id,
        position,
        title,
        category,
        number,
        weight_text=weight_text,
        severity=severity,
        content_hash=criterion_hash(title),
        labels=tuple(labels),
    )


def band_of(weight: Any, bands: Mapping[str, tuple[float, float]]) -> str | None:
    """Return the weight class of a weight; None if it is not a number or outside all classes."""
    number = as_number(weight)
    if number is not None:
        for name, (lowest, highest) in bands.items():
            if lowest <= number <= highest:
                return name
    return None


def task_from(
    task_id: str | None,
    conversation: Sequence[Turn],
    criteria: Sequence[Criterion],
    *,
    field: str | None = None,
    labels: Sequence[Label] = (),
    canary: str | None = None,
) -> Task:
    """Return a task; the number of its turns is counted.

    Raises:
        RowError: the task has no id.
    """
    if task_id is None or shows_nothing(task_id):
        raise RowError("the row has no task id")
    messages = build_messages(conversation)
    turns = sum(role == "user" for role, _ in messages)
    rubric = list(map(_hashed_values, criteria))
    return Task(
        task_id,
        field,
        topic=None,
        expert=None,
        turns=turns,
        turn_pattern=turn_pattern(conversation, turns),
        decision_types=(),
        economic_pathways=(),
        conversation=tuple(conversation),
        has_reference_texts=any(turn.reference_texts for turn in conversation),
        criteria=tuple(criteria),
        canary=canary,
        conversation_id=conversation_id(messages),
        content_hash=digest("task", messages, rubric, labels),
        labels=tuple(labels),
    )


def as_list(value: Any) -> list[Any]:
    """Return a list from None, a list or a tuple; anything else is one element, so that nothing is
    lost.
    """
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def as_items(value: Any) -> list[DataRow]:
    """Return the mappings in a list (see `as_list`); both may be JSON in a text."""
    return [as_mapping(nested(item)) for item in as_list(nested(value))]


def nested(value: Any) -> Any:
    """Return the list or mapping that a text holds as JSON, None for JSON's null, and any other
    value unchanged.

    Exports of tables write nested values in this form, some of them twice.
    """
    text = decoded(value)
    if not isinstance(text, str):
        return value
    try:
        content = nested(read_json(text))
    except (ValueError, RecursionError):
        return value
    return content if content is None or isinstance(content, list | dict) else value


def decoded(value: Any) -> Any:
    """Return bytes as the text that they hold in UTF-8; anything else, also other bytes, is
    returned unchanged.
    """
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def as_text(value: Any, name: str = "a value") -> str | None:
    """Return a text or a number as text that can be stored; None for None and NaN.

    Raises:
        RowError: it is something else, such as a list or bytes that are not UTF-8; `name` says what
            it is.
    """
    content = decoded(value)
    if content is None or (isinstance(content, float) and math.isnan(content)):
        return None
    if isinstance(content, bool) or not isinstance(content, str | int | float | Decimal):
        raise _not_a_text(name, content)
    return storable(str(content))


def text_or_none(value: Any) -> str | None:
    """Return a text or a number as text, and None for anything else."""
    try:
        return as_text(value)
    except RowError:
        return None


def _not_a_text(name: str, value: Any) -> RowError:
    return RowError(f"{name} is not a text (its type is {type(value).__name__})")


def cell_label(row: DataRow, name: str) -> str | None:
    """Return the label or id in a column of a row, which may be a number (see `as_text` for its
    errors).
    """
    return as_text(row.get(name), f"`{name}`")


def cell_text(row: DataRow, name: str) -> str | None:
    """Return the text in a column of a row, which may not be a number (see `as_text` for its
    errors).
    """
    text = cell_label(row, name)
    if text is not None and not isinstance(row[name], str | bytes):
        raise _not_a_text(f"`{name}`", row[name])
    return text


def message_text(message: DataRow, *, skip_unknown: bool = False) -> str | None:
    """Return the text of a message: its `content`, or the text parts of that, without the parts
    that are thinking.

    With `skip_unknown`, parts of other types, such as images and calls of tools, are left out.

    Raises:
        RowError: the content is neither a text nor a list of parts, or a part has another type.
    """
    parts = message.get("content")
    if not isinstance(parts, list):
        return cell_text(message, "content")
    content = content_of(parts)
    if content.unknown_type is not None and not skip_unknown:
        part_type = one_line(content.unknown_type, 40)
        raise RowError(f"`content` has a part that is not a text (its type is {part_type})")
    return content.text


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages, each with a role."""
    if not isinstance(value, list) or not value:
        return False
    return all("role" in as_mapping(message) for message in value)


def response_text(row: DataRow, name: str) -> str | None:
    """Return the response in a column of a row: a text, or the text of the last of the assistant's
    messages.

    The messages may be JSON in a text. Other JSON, also of a list of people with roles, is a text.

    Raises:
        RowError: it is something else.
    """
    value = row.get(name)
    messages = nested(value)
    responses = []
    if is_conversation(messages):
        responses = [message for message in messages if message["role"] == "assistant"]
    if responses and (messages is value or "content" in responses[-1]):
        return message_text(responses[-1])
    if is_conversation(value):
        raise RowError(f"`{name}` is a list of messages without one of the assistant")
    return cell_text(row, name)


def as_mapping(value: Any) -> DataRow:
    """Return a mapping, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_number(value: Any) -> float | None:
    """Return a finite number; None for anything else, such as a text, a boolean, NaN or
    infinity.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_whole_number(value: Any) -> int | None:
    """Return a whole number (2 or 2.0) below 2^53, up to which floats are exact; None for anything
    else.
    """
    number = as_number(value)
    if number is None or not number.is_integer() or abs(number) >= 2**53:
        return None
    return int(number)


def split_labels(text: str | None, vocabulary: Collection[str]) -> tuple[str, ...]:
    """Return the labels of a comma-joined list, some of which contain commas themselves.

    At the beginning of each label, known labels are tried, the longest first; if none fits, the
    label extends to the next comma.
    """
    longest_first = sorted(vocabulary, key=len, reverse=True)
    patterns = [rf"{re.escape(label)}(?= ?,|$)" for label in longest_first]
    patterns.append("[^,]+")
    labels = re.findall(rf"\s*({'|'.join(patterns)})", (text or "").strip())
    stripped_labels = map(str.strip, labels)
    return tuple(dict.fromkeys(filter(None, stripped_labels)))
