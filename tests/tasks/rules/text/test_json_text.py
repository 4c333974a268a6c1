"""JSON from users: read as by the standard library, but a repeated key is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.text.json_text import read_json, refuse_deep

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.sampled_from([None, 1]))
def test_what_is_json_is_read_as_it_is(value, indent):
    text = json.dumps(value, indent=indent)

    assert read_json(text) == value
    assert read_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 1}', "key 'a' appears twice"),
        (r'{"a": 1, "\u0061": 2}', "key 'a' appears twice"),
        ('[{"b": [{"a": 1, "b": 2, "a": null}]}]', "key 'a' appears twice"),
        (
            '[\n{"a": 1},\n{"b": 3, "a": 1, "a": 2}\n]',
            "key 'a' appears twice in the object that begins with {\"b\": 3,",
        ),
    ],
)
def test_a_key_that_stands_twice_is_refused_and_placed(text, message):
    for content in (text, text.encode(), text.encode("utf-8-sig")):
        with pytest.raises(ValueError, match=f"^{message}"):
            read_json(content)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[" * 201 + "]" * 201, "[" * 900 + "]" * 900]
)
def test_what_is_nested_too_deeply_is_refused(text):
    with pytest.raises(RecursionError):
        read_json(text)


def test_a_long_text_is_not_nested_deeply():
    assert len(read_json(json.dumps([{"a": [1, 2]}] * 1_000))) == 1_000


def test_two_hundred_levels_are_not_too_deep():
    text = "[" * 200 + "1" + "]" * 200

    assert json.dumps(read_json(text)) == text


def test_as_many_values_as_allowed_are_not_too_many():
    refuse_deep([1, 2], most_values=3)
    with pytest.raises(RecursionError):
        refuse_deep([1, 2], most_values=2)
