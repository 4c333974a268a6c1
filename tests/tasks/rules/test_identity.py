"""Identity is content: the same parts give the same key, any changed part gives another."""

from datetime import date
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules import identity
from tasks.rules.identity import is_impossible_date

MAKERS = {
    "response": identity.response_id,
    "verdict": identity.verdict_id,
    "call": identity.call_key,
    "review": identity.review_id,
    "config": identity.config_hash,
}
OTHER_VALUES: dict[str, Any] = {
    "trial": 1,
    "judge_trial": 1,
    "parameters": {"a": 1},
    "key": {"benchmark": "b"},
    "piece": ["p"],
    "messages": [{"role": "user", "content": "c"}],
}
"""Values of parts that are not text; the value of any other part is its name."""


def parts_of(kind: str) -> dict[str, Any]:
    names = signature(MAKERS[kind]).parameters
    return {name: OTHER_VALUES.get(name, name) for name in names}


def altered(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "z": 0}
    if isinstance(value, int):
        return value + 1
    return value * 2


@pytest.mark.parametrize("kind", MAKERS)
def test_any_one_altered_part_is_another_identity(kind):
    make = MAKERS[kind]
    parts = parts_of(kind)

    for name, value in parts.items():
        assert make(**(parts | {name: altered(value)})) != make(**parts), name


@pytest.mark.parametrize(
    "label",
    [
        "2026-13-45",
        "2026-02-30",
        "2026-11-281",
        "20261345",
        "2026/13/01",
        "2026.11.31",
        "2026-13",
        "31.02.2026",
        "2026-11-28T25:00",
        "2026-11-28 10:61",
        "2026-13-45-rerun",
        "2026-0-1",
    ],
)
def test_a_label_that_looks_like_a_date_and_is_none_is_impossible(label):
    assert is_impossible_date(label)


@pytest.mark.parametrize(
    "label",
    [
        "base",
        "2026-11-28",
        "2026-11-28T06:00",
        "20261128",
        "2026/11/28",
        "28.11.2026",
        "11/28/2026",
        "2026-11",
        "2026",
        "v1.2",
        "1.2.3",
        "2026-11-28-rerun",
        "2026-Q4",
        "2026-W49",
        "gpt-5-2026-13",
        "12345678",
        "",
    ],
)
def test_a_date_or_another_label_is_possible(label):
    assert not is_impossible_date(label)


@given(st.dates(min_value=date(1000, 1, 1)))
def test_every_date_is_possible(day):
    assert not is_impossible_date(day.isoformat())
