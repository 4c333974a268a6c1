"""Characters that a terminal obeys, or that hide text, are shown."""

import codecs
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.text.characters import visible

ESCAPE = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
NASTY = st.text(st.one_of(
    st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs", "Mn"]), st.sampled_from("aé語\u200d\ufe0f\r\n\U0001f525 1"),
    st.characters(),
))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode 語 \U0001f525\n\tindented\r\n", "plain, ünïcode 語 \U0001f525\n\tindented\r\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f", r"\x00\x08\x0b\x0c\x7f\x80\x9b31m\x9f"),
        ("over\rwritten", r"over\x0dwritten"),
        ("\u202a\u202e\u2066\u2069\u200e\u200f\u061c", r"\u202a\u202e\u2066\u2069\u200e\u200f\u061c"),
        ("\u2028\u2029\u200b\ufeff\u2060\xad", r"\u2028\u2029\u200b\ufeff\u2060\xad"),
        ("\U000e0041\U000e0100", r"\U000e0041\U000e0100"),
        ("\ud800 and \udfff", r"\ud800 and \udfff"),
        # Families, a burning heart, a keycap, Persian and Devanagari are written with joiners.
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3"),
        ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"),
        ("pass\u200dword\u200c", r"pass\u200dword\u200c"),
        ("é\u200d\u200dé", r"é\u200d\u200dé"),
        ("a\ufe01\ufe02", r"a\ufe01\ufe02"),
        ("\u2764\ufe0f\ufe01", "\u2764\ufe0f" + r"\ufe01"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(NASTY)
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = visible(text)
    rest = shown.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in rest)
    assert not any(unicodedata.bidirectional(character) in BIDI_CONTROLS for character in rest)
    assert visible(shown) == shown


BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(NASTY.filter(lambda text: "\\" not in text))
def test_what_is_shown_can_be_read_back(text: str) -> None:
    back = ESCAPE.sub(lambda match: codecs.decode(match[0], "unicode_escape"), visible(text))
    assert back == text


def test_every_character_that_unicode_calls_a_control_of_text_is_shown() -> None:
    # Joiners depend on what they stand between; the others of these are letters, signs and numbers.
    seen = {
        "\u200c",
        "\u200d",
        *"\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd",
    }
    egyptian = {chr(number) for number in range(0x13430, 0x13440)}
    controls = (chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) == "Cf")
    assert [] == [hex(ord(c)) for c in controls if c not in seen | egyptian and visible(c) == c]
