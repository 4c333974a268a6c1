"""Text that can be stored, counted and shown."""

import codecs
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.text.characters import (
    count_alphanumeric,
    is_blank,
    one_line,
    shows_nothing,
    storable,
    visible,
)

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=30)
"""Texts that may contain lone surrogates."""


@given(ANY_TEXT)
def test_every_text_can_be_stored(text):
    result = storable(text)

    assert result.encode("utf-8").decode("utf-8") == result
    assert storable(result) == result


@given(st.text())
def test_a_text_without_surrogates_is_left_as_it_is(text):
    assert storable(text) == text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("cut \ud83d", "cut \ufffd"),
        ("\ude00 cut", "\ufffd cut"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud800b\udfffc", "a\ufffdb\ufffdc"),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_its_character(
    text, result
):
    assert storable(text) == result


@pytest.mark.parametrize(
    ("text", "n_chars"),
    [
        ("", 0),
        ("a b", 2),
        ("a1-ü!", 3),
        ("**\n- x_y", 2),
        ("$1,234.50", 6),
        ("日本", 2),
        ("😀", 0),
    ],
)
def test_only_letters_and_digits_count(text, n_chars):
    assert count_alphanumeric(text) == n_chars


@given(ANY_TEXT, st.integers(1, 20))
def test_one_line_is_one_line_of_at_most_its_length(text, most_chars):
    line = one_line(text, most_chars)

    assert len(line) <= most_chars
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t\r", "\u00a0", "\u2003\u3000", "\x0b\x0c"]
)
def test_white_space_is_blank(text):
    assert is_blank(text)
    assert shows_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "\u200b",
        "\ufeff\u200d",
        "\u00ad",
        "\u115f\u3164",
        "\u2800",
        "\x1b\x00",
        "\ufe0f",
    ],
)
def test_invisible_characters_show_nothing(text):
    assert not is_blank(text)
    assert shows_nothing(text)


@pytest.mark.parametrize(
    "text", ["0", ".", " a ", "\u200ba", "\ufffd", "\u0301", "\U0001f600", "\u3000x"]
)
def test_a_visible_character_shows_something(text):
    assert not is_blank(text)
    assert not shows_nothing(text)


ESCAPE = re.compile(r"\\r|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
NASTY = st.text(
    st.one_of(
        st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs", "Mn"]),
        st.sampled_from("aé語\u200d\ufe0f\r\n\U0001f525 1"),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        (
            "plain, ünïcode 語 \U0001f525\n\tindented\r\n",
            "plain, ünïcode 語 \U0001f525\n\tindented\r\n",
        ),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        (
            "\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f",
            r"\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f",
        ),
        ("over\rwritten", r"over\rwritten"),
        (
            "\u202a\u202e\u2066\u2069\u200e\u200f\u061c",
            r"\u202a\u202e\u2066\u2069\u200e\u200f\u061c",
        ),
        ("\u2028\u2029\u200b\ufeff\u2060\xad", r"\u2028\u2029\u200b\ufeff\u2060\xad"),
        ("\U000e0041\U000e0100", r"\U000e0041\U000e0100"),
        ("\ud800 and \udfff", r"\ud800 and \udfff"),
        # Families, a burning heart, a keycap, Persian and Devanagari need joiners.
        (
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        ),
        (
            "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3",
            "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3",
        ),
        ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"),
        ("pass\u200dword\u200c", r"pass\u200dword\u200c"),
        ("é\u200d\u200dé", r"é\u200d\u200dé"),
        ("a\ufe01\ufe02", r"a\ufe01\ufe02"),
        ("\u2764\ufe0f\ufe01", "\u2764\ufe0f" + r"\ufe01"),
    ],
)
def test_control_characters_are_shown(text, visible_text):
    assert visible(text) == visible_text


@given(NASTY)
def test_a_visible_text_holds_nothing_that_a_terminal_obeys(text):
    content = visible(text).replace("\r\n", "").replace("\n", "").replace("\t", "")

    assert {"Cc", "Cs", "Zl", "Zp"}.isdisjoint(map(unicodedata.category, content))
    assert BIDI_CONTROLS.isdisjoint(map(unicodedata.bidirectional, content))


@given(NASTY)
def test_a_visible_text_does_not_change_again(text):
    assert visible(visible(text)) == visible(text)


BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(NASTY.filter(lambda text: "\\" not in text))
def test_a_visible_text_can_be_read_back(text):
    unescaped = ESCAPE.sub(
        lambda match: codecs.decode(match[0], "unicode_escape"), visible(text)
    )

    assert unescaped == text


def test_every_character_that_unicode_calls_a_control_of_text_is_shown():
    joiners = {"\u200c", "\u200d"}
    letters_and_signs = set(
        "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    )
    egyptian = set(map(chr, range(0x13430, 0x13440)))
    characters = (
        set(map(chr, range(0x110000))) - joiners - letters_and_signs - egyptian
    )

    hidden = [
        hex(ord(character))
        for character in characters
        if unicodedata.category(character) == "Cf" and visible(character) == character
    ]

    assert hidden == []


@pytest.mark.parametrize(
    "text", [*"\u0350\u1161\u17b6\u1810\u2801\u3165\uff9f\ufffd"]
)
def test_a_character_beside_the_invisible_ones_shows_something(text):
    assert not shows_nothing(text)


@pytest.mark.parametrize(
    ("text", "line"), [("a \n bcd", "a bcd"), ("abcdef", "abcd…")]
)
def test_one_line_is_cut_only_if_it_is_too_long(text, line):
    assert one_line(text, 5) == line
