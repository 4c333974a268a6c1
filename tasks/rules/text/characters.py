"""Small rules about text, and its visible form for people."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tasks.rules.text.numbers import list_text

_CONTROLS = {"Cc", "Cf"}
"""Categories of control and format characters."""
_BLANK = re.compile(
    "[\u034f\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u2065\u2800\u3164"
    "\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U0001d159\U000e0000-\U000e0fff]"
)
"""Invisible characters whose category is neither space nor format: Hangul fillers, the blank
Braille pattern, variation selectors, and others that Unicode marks as ignorable.
"""


def is_blank(text: str | None) -> bool:
    """Return whether a text is absent, empty, or white space."""
    return text is None or not text.strip()


def shows_nothing(text: str) -> bool:
    """Return whether a text has no visible character.

    White space, control and format characters, and fillers are invisible.
    """
    return all(map(_is_invisible, text))


def _is_invisible(char: str) -> bool:
    is_control = unicodedata.category(char) in _CONTROLS
    return char.isspace() or is_control or _BLANK.match(char) is not None


def visible_only(text: str) -> str:
    """Return the text without control and format characters, such as zero-width spaces."""
    return "".join(char for char in text if unicodedata.category(char) not in _CONTROLS)


def storable(text: str) -> str:
    """Return the text with U+FFFD for lone surrogates, which UTF-8 cannot hold.

    A reply that is cut inside an emoji has one. Surrogates that form a pair become their character.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def count_alphanumeric(text: str) -> int:
    """Return the number of letters and digits, the length of a response in PRBench's figure 7."""
    return sum(map(str.isalnum, text))


def one_line(text: str, most_chars: int = 300) -> str:
    """Return a message for a table or a terminal line: white space folded, cut to a length."""
    folded = " ".join(text.split())
    return folded if len(folded) <= most_chars else folded[: most_chars - 1] + "…"


_HIDING = (
    "\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f"  # controls, many of which a terminal obeys
    "\xad-\xad\u034f-\u034f\u061c-\u061c\u17b4-\u17b5\u180e-\u180e\u200b-\u200b"
    "\u200e-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff-\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Ranges of code points that are commands, reorder text, end lines, have no width, or are no
characters.
"""
_JOINERS = "\u200c\u200d"
"""Joiners. Some scripts and emoji need them; elsewhere they only hide text."""
_VARIANTS = "\ufe00-\ufe0f"
"""Variation selectors. Emoji and some scripts need them; elsewhere they only hide text."""
_VISIBLE_NON_ASCII = f"[^\x00-\xa0{_HIDING}{_JOINERS}{_VARIANTS}]"
_HIDDEN = re.compile(
    f"[{_HIDING}]"
    # A carriage return that does not end a line.
    r"|\r(?!\n)"
    # A joiner, unless a visible character beyond ASCII follows it, and another one or a variation
    # selector precedes it.
    f"|[{_JOINERS}](?!{_VISIBLE_NON_ASCII})|(?<!{_VISIBLE_NON_ASCII})(?<![{_VARIANTS}])[{_JOINERS}]"
    # A variation selector, unless it follows such a character or the ASCII part of a keycap.
    f"|(?<!{_VISIBLE_NON_ASCII})(?<![0-9#*])[{_VARIANTS}]"
)
_MAY_BE_HIDDEN = re.compile(f"[{_HIDING}{_JOINERS}{_VARIANTS}\r]")
"""All characters that `_HIDDEN` may match. Most texts have none of them, and this pattern takes a
ninth of the time of `_HIDDEN`.
"""
HIDDEN_IN_SCRIPTS = re.sub(r"[^ -~]", lambda char: f"\\u{{{ord(char[0]):x}}}", _HIDDEN.pattern)
"""The regular expression of hidden characters for JavaScript (with the flag `u`)."""


def visible(text: str) -> str:
    r"""Return a text in which terminal commands and hidden characters are escaped, as `\x1b`,
    `\u202e` or `\U000e0041`.

    Ends of lines and tabs stay, and a visible text does not change again.
    """
    if _MAY_BE_HIDDEN.search(text) is None:
        return text
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return a JSON text with hidden characters escaped; its value stays the same."""
    return _HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def with_visible_texts(value: Any) -> Any:
    """Return a value of JSON whose texts are visible, also as keys."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {with_visible_texts(key): with_visible_texts(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_visible_texts(part) for part in value]
    return value


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a hint for a message about an unknown key: the nearest known one in brackets.

    It is empty if none of the names is near. Upper and lower case count as equal.
    """
    by_lower = {known_name.lower(): known_name for known_name in names}
    near = get_close_matches(name.lower(), list(by_lower), n=1)
    return f" (did you mean `{by_lower[near[0]]}`?)" if near else ""


def hint_on(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest one, or else all names."""
    unique_names = sorted(set(names))
    return did_you_mean(name, unique_names) or f"; known: {list_text(unique_names, 10) or 'none'}"
