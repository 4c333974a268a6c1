"""Ids of work: hashes of its content, never of its position; equal ids mean the same work.

Nearly every id is a digest of canonical JSON (the others say so), so it does not depend on
dictionary order, the machine or the time. Omissions are deliberate: a changed weight changes scores
but needs no new verdict, and a longer time limit no new sample.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

DIGEST_HEX = 32
"""Number of hexadecimal digits of a digest."""
BASE_VINTAGE = "base"
"""The vintage of a sampling that is not tied to a date."""
EVERY_VINTAGE = "all"
"""Selects the rows of all vintages."""
IMPORTED = "imported"
"""The configuration or template hash of imported rows."""
JUDGE_CONFIG = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
"""The columns that identify a judge configuration."""
judge_config_of = itemgetter(*JUDGE_CONFIG)
"""Returns the values of these columns in a row."""

_YEAR_FIRST = re.compile(r"(\d{4})[\W_](\d+)(?:[\W_](\d+))?|((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)")
_DAY_FIRST = re.compile(r"(\d{1,2})[\W_](\d{1,2})[\W_](\d{4})(?!\d)")
_TIME = re.compile(r"[T _]*(\d+):(\d+)")


def is_impossible_date(label: str) -> bool:
    """Return whether a label begins like a date that no calendar has, such as 2026-13-45.

    A time may follow.
    """
    year_first = _YEAR_FIRST.match(label)
    date = year_first or _DAY_FIRST.match(label)
    if date is None:
        return False
    numbers = [int(number) for number in date.groups() if number is not None]
    if year_first:
        # The day may be missing.
        readings = [[*numbers, 1][:3]]
    else:
        # The month may come first.
        day, month, year = numbers
        readings = [[year, month, day], [year, day, month]]
    time = _TIME.match(label, date.end())
    clock = [int(number) for number in time.groups()] if time else []
    return not any(_is_moment(*reading, *clock) for reading in readings)


def _is_moment(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> bool:
    """Return whether the numbers are those of a moment."""
    try:
        datetime(year, month, day, hour, minute, tzinfo=UTC)
    except (ValueError, OverflowError):
        return False
    return True


def digest(*parts: Any) -> str:
    """Hash any JSON-like values to 128 bits, as 32 hexadecimal characters."""
    text = json.dumps(
        parts,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_HEX]


def conversation_id(messages: Sequence[tuple[str, str]]) -> str:
    """Return the id of a conversation: the roles and contents as they are sent."""
    return digest("conversation", messages)


def criterion_hash(title: str) -> str:
    """Return the id of a criterion for a judge, from its title alone."""
    return digest("criterion", title)


def config_hash(*, name: str, endpoint: str, parameters: Mapping[str, Any]) -> str:
    """Return the id of a configured model; its parameters are those that change responses."""
    return digest("config", name, endpoint, dict(parameters))


def template_hash(text: str, *other_texts: str) -> str:
    """Return the id of a judge template, from its text and all other texts for judges."""
    return digest("template", text, *other_texts)


def call_key(
    *,
    name: str,
    endpoint: str,
    parameters: Mapping[str, Any],
    messages: Sequence[Mapping[str, str]],
    trial: int,
    vintage: str,
) -> str:
    """Return the id of a request; it does not depend on attempts, time limits, runs and order."""
    return digest(
        "call",
        name,
        endpoint,
        dict(parameters),
        list(map(dict, messages)),
        trial,
        vintage,
    )


def adopted_key(*, earlier_key: str, address: str) -> str:
    """Return the key of an adopted reply, which was stored under a key without its address."""
    return f"{earlier_key} at {address}"


def response_id(
    *,
    benchmark: str,
    dataset_revision: str,
    task_id: str,
    conversation_id: str,
    model: str,
    model_config_hash: str,
    trial: int,
    vintage: str,
) -> str:
    """Return the id of a response: of one model to one task in one trial and vintage."""
    return digest(
        "response",
        benchmark,
        dataset_revision,
        task_id,
        conversation_id,
        model,
        model_config_hash,
        trial,
        vintage,
    )


def verdict_id(
    *,
    response_id: str,
    response_text: str,
    criterion_id: str,
    criterion_hash: str,
    judge: str,
    judge_config_hash: str,
    template_hash: str,
    grading: str,
    judge_trial: int,
    judge_vintage: str = BASE_VINTAGE,
    piece: Sequence[str] = (),
) -> str:
    """Return the id of one judge's decision on one criterion of one response text.

    Two trials with the same text have two verdicts: they differ in `response_id`. `piece` holds the
    hashes of the criteria in the same call, in order, if the judge decides groups.
    """
    parts = [
        response_id,
        response_text,
        criterion_id,
        criterion_hash,
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial,
        judge_vintage,
    ]
    if piece:
        parts.append(piece)
    return digest("verdict", *parts)


def piece_hash(piece: Sequence[str]) -> str | None:
    """Return the id of a piece of a rubric from the hashes of its criteria; None for no piece.

    It is an MD5 hash, which SQL computes from the same hashes.
    """
    if not piece:
        return None
    return hashlib.md5(" ".join(piece).encode(), usedforsecurity=False).hexdigest()


def review_id(
    *,
    key: Mapping[str, str],
    task_id: str,
    criterion_id: str,
    criterion_hash: str,
    reviewer: str,
) -> str:
    """Return the id of a person's review of a criterion; `key` is the data set's."""
    return digest("review", dict(key), task_id, criterion_id, criterion_hash, reviewer)
