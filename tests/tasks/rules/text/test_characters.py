"""Text that can be stored, counted and shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.text.characters import count_alphanumeric, is_blank, one_line, shows_nothing, storable

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=30)
"""Lone surrogates among it."""


@given(ANY_TEXT)
def test_every_text_can_be_stored_and_one_that_can_is_left_as_it_is(text: str) -> None:
    found = storable(text)
    assert found == found.encode("utf-8").decode("utf-8") == storable(found)
    if not any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        assert found == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cut \ud83d", "cut \ufffd"),
        ("\ude00 cut", "\ufffd cut"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud800b\udfffc", "a\ufffdb\ufffdc"),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_its_character(text: str, wanted: str) -> None:
    assert wanted == storable(text)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a b", 2), ("a1-ü!", 3), ("**\n- x_y", 2), ("$1,234.50", 6), ("日本", 2), ("😀", 0)]
)
def test_only_letters_and_digits_count(text: str, count: int) -> None:
    assert count == count_alphanumeric(text)


@given(ANY_TEXT, st.integers(1, 20))
def test_one_line_is_one_line_of_at_most_its_length(text: str, most: int) -> None:
    line = one_line(text, most)

    assert most >= len(line)
    assert 1 >= len(line.splitlines())


def test_a_line_that_is_cut_says_so() -> None:
    assert "a b…" == one_line("a \n b\tc d", 4)


@pytest.mark.parametrize("text", ["", " ", "\n\t\r", "\u00a0", "\u2003\u3000", "\x0b\x0c"])
def test_white_space_says_nothing_and_shows_nothing(text: str) -> None:
    assert is_blank(None)
    assert is_blank(text)
    assert shows_nothing(text)


@pytest.mark.parametrize("text", ["\u200b", "\ufeff\u200d", "\u00ad", "\u115f\u3164", "\u2800", "\x1b\x00", "\ufe0f"])
def test_characters_without_a_picture_say_something_and_show_nothing(text: str) -> None:
    assert not is_blank(text)
    assert shows_nothing(text)


@pytest.mark.parametrize("text", ["0", ".", " a ", "\u200ba", "\ufffd", "\u0301", "\U0001f600", "\u3000x"])
def test_any_other_character_says_and_shows_something(text: str) -> None:
    assert not is_blank(text)
    assert not shows_nothing(text)
