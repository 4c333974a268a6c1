"""Identity is content: the same parts give the same key, any other part another one."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules import identity

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def reordered(value: Any) -> Any:
    """The same value with every dictionary written in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_the_order_of_a_dictionary_is_not_content(value: Any) -> None:
    assert identity.digest(value) == identity.digest(reordered(value))


def test_a_key_is_the_same_on_every_day_and_machine() -> None:
    # Written out: should the form ever change, every stored row would be orphaned.
    canonical = b'["a",1,{"b":[null,true,"\\u00fc"]}]'

    assert hashlib.sha256(canonical).hexdigest()[:32] == identity.digest("a", 1, {"b": [None, True, "ü"]})


IDENTITIES: dict[str, tuple[Callable[..., str], dict[str, Any]]] = {
    "response": (
        identity.response_id,
        {"benchmark": "b", "dataset_revision": "r", "task_id": "t", "conversation": "c", "model": "m",
         "model_config_hash": "h", "trial": 1, "vintage": "v"},
    ),
    "verdict": (
        identity.verdict_id,
        {"response": "r", "response_text": "x", "criterion_id": "i", "criterion": "c", "judge": "j",
         "judge_config_hash": "h", "template": "t", "grading": "g", "judge_trial": 1, "judge_vintage": "v"},
    ),
    "call": (
        identity.call_key,
        {"name": "n", "endpoint": "e", "parameters": {"a": 1}, "messages": [{"role": "user", "content": "c"}],
         "trial": 1, "vintage": "v"},
    ),
    "review": (
        identity.review_id,
        {"key": {"benchmark": "b"}, "task_id": "t", "criterion_id": "i", "criterion": "c", "reviewer": "r"},
    ),
    "config": (identity.config_hash, {"name": "n", "endpoint": "e", "parameters": {"a": 1}}),
}  # fmt: skip


def changed(value: Any) -> Any:
    return {str: lambda: value + "x", int: lambda: value + 1, dict: lambda: {**value, "z": 0}, list: lambda: value * 2}[
        type(value)
    ]()


def test_each_character_of_a_criterion_and_each_word_beside_a_template_is_content() -> None:
    titles = ["Cites the law", " Cites the law", "Cites the law\n", "cites the law", "Cites  the law"]
    templates = [("text",), ("text", ""), ("text", "beside"), ("text", "beside", "more"), ("textbeside",)]

    assert len(titles) == len(set(map(identity.criterion_hash, titles)))
    assert len(templates) == len({identity.template_hash(*each) for each in templates})


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind, (_, parts) in IDENTITIES.items() for part in parts])
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
