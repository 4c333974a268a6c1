"""Identity is content: the same parts give the same key, any changed part gives another."""

import hashlib
from datetime import date
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules import identity
from tasks.rules.identity import is_impossible_date

LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


def reordered(value: Any) -> Any:
    """The same value with the keys of every dictionary in reverse order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_the_order_of_a_dictionary_is_not_content(value: Any) -> None:
    assert identity.digest(value) == identity.digest(reordered(value))


def test_a_key_is_the_same_on_every_day_and_machine() -> None:
    # Written out here: if the form ever changed, no stored row would be found any more.
    canonical = b'["a",1,{"b":[null,true,"\\u00fc"]}]'

    assert hashlib.sha256(canonical).hexdigest()[:32] == identity.digest(
        "a", 1, {"b": [None, True, "ü"]}
    )


MAKERS = {
    "response": identity.response_id,
    "verdict": identity.verdict_id,
    "call": identity.call_key,
    "review": identity.review_id,
    "config": identity.config_hash,
}
GIVEN: dict[str, Any] = {
    "trial": 1,
    "judge_trial": 1,
    "parameters": {"a": 1},
    "key": {"benchmark": "b"},
    "piece": ["p"],
    "messages": [{"role": "user", "content": "c"}],
}
"""Values of parts that are not text; the value of any other part is its name."""
IDENTITIES = {
    kind: (make, {part: GIVEN.get(part, part) for part in signature(make).parameters})
    for kind, make in MAKERS.items()
}


def changed(value: Any) -> Any:
    return (
        {**value, "z": 0}
        if isinstance(value, dict)
        else value + 1
        if isinstance(value, int)
        else value * 2
    )


def test_each_character_of_a_criterion_and_each_word_beside_a_template_is_content() -> None:
    titles = [
        "Cites the law",
        " Cites the law",
        "Cites the law\n",
        "cites the law",
        "Cites  the law",
    ]
    templates = [
        ("text",),
        ("text", ""),
        ("text", "beside"),
        ("text", "beside", "more"),
        ("textbeside",),
    ]

    assert len(titles) == len(set(map(identity.criterion_hash, titles)))
    assert len(templates) == len({identity.template_hash(*each) for each in templates})


@pytest.mark.parametrize(
    ("kind", "part"), [(kind, part) for kind, (_, parts) in IDENTITIES.items() for part in parts]
)
def test_any_one_changed_part_is_another_identity(kind: str, part: str) -> None:
    make, parts = IDENTITIES[kind]

    assert make(**parts) != make(**(parts | {part: changed(parts[part])}))


@pytest.mark.parametrize("kind", IDENTITIES)
def test_no_two_parts_can_take_each_others_place(kind: str) -> None:
    make, parts = IDENTITIES[kind]
    texts = [name for name, value in parts.items() if isinstance(value, str)]
    swaps = [parts | {a: parts[b], b: parts[a]} for a in texts for b in texts if a < b]

    assert len(swaps) + 1 == len({make(**each) for each in [parts, *swaps]})


def test_the_order_of_messages_is_content() -> None:
    messages = [("user", "a"), ("user", "b")]

    assert identity.conversation_id(messages) != identity.conversation_id(messages[::-1])


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
def test_a_label_that_looks_like_a_date_and_is_none_is_impossible(label: str) -> None:
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
def test_a_date_or_another_label_is_possible(label: str) -> None:
    assert not is_impossible_date(label)


@given(st.dates(min_value=date(1000, 1, 1)))
def test_every_date_is_possible(day: date) -> None:
    assert not is_impossible_date(day.isoformat())
