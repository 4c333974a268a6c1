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
def test_every_text_can_be_stored_and_one_that_can_is_left_as_it_is(text: str) -> None:
    result = storable(text)
    assert result == result.encode("utf-8").decode("utf-8") == storable(result)
    if not any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        assert text == result


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
def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_its_character(
    text: str, wanted: str
) -> None:
    assert wanted == storable(text)


def test_only_letters_and_digits_count() -> None:
    counts = {
        "": 0,
        "a b": 2,
        "a1-ü!": 3,
        "**\n- x_y": 2,
        "$1,234.50": 6,
        "日本": 2,
        "😀": 0,
    }
    assert counts == {text: count_alphanumeric(text) for text in counts}


@given(ANY_TEXT, st.integers(1, 20))
def test_one_line_is_one_line_of_at_most_its_length(text: str, most: int) -> None:
    line = one_line(text, most)

    assert most >= len(line)
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("texts", "says", "shows"),
    [
        (("", " ", "\n\t\r", "\u00a0", "\u2003\u3000", "\x0b\x0c"), False, False),
        (
            ("\u200b", "\ufeff\u200d", "\u00ad", "\u115f\u3164", "\u2800", "\x1b\x00", "\ufe0f"),
            True,
            False,
        ),
        (("0", ".", " a ", "\u200ba", "\ufffd", "\u0301", "\U0001f600", "\u3000x"), True, True),
    ],
)
def test_white_space_and_invisible_characters_show_nothing(
    texts: tuple[str, ...], says: bool, shows: bool
) -> None:
    assert [(says, shows)] * len(texts) == [
        (not is_blank(text), not shows_nothing(text)) for text in texts
    ]


ESCAPE = re.compile(r"\\r|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
NASTY = st.text(
    st.one_of(
        st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs", "Mn"]),
        st.sampled_from("aé語\u200d\ufe0f\r\n\U0001f525 1"),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "plain, ünïcode 語 \U0001f525\n\tindented\r\n",
            "plain, ünïcode 語 \U0001f525\n\tindented\r\n",
        ),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f", r"\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f"),
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
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert shown == visible(text)


@given(NASTY)
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = visible(text)
    rest = shown.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    assert not any(
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in rest
    )
    assert not any(unicodedata.bidirectional(character) in BIDI_CONTROLS for character in rest)
    assert visible(shown) == shown


BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(NASTY.filter(lambda text: "\\" not in text))
def test_what_is_shown_can_be_read_back(text: str) -> None:
    back = ESCAPE.sub(lambda match: codecs.decode(match[0], "unicode_escape"), visible(text))
    assert text == back


def test_every_character_that_unicode_calls_a_control_of_text_is_shown() -> None:
    # Visible depending on context: joiners. Always visible: letters, signs and numbers.
    seen = {
        *"\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    }
    egyptian = {chr(number) for number in range(0x13430, 0x13440)}
    controls = (
        chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) == "Cf"
    )
    assert [hex(ord(c)) for c in controls if c not in seen | egyptian and visible(c) == c] == []


@pytest.mark.parametrize("text", [*"\u0350\u1161\u17b6\u1810\u2801\u3165\uff9f\ufffd"])
def test_a_character_beside_the_invisible_ones_shows_something(text: str) -> None:
    assert not shows_nothing(text)


@pytest.mark.parametrize(("text", "line"), [("a \n bcd", "a bcd"), ("abcdef", "abcd…")])
def test_one_line_is_cut_only_if_it_is_too_long(text: str, line: str) -> None:
    assert one_line(text, 5) == line
