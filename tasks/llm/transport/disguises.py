"""The forms in which a secret may stand in a text: base64, hexadecimal, percent-encoded, escaped as in JSON or HTML."""

import base64
import re
from collections.abc import Sequence
from functools import lru_cache

REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter values are looked for as they are alone: their other forms are like ordinary words."""
_ESCAPED = re.compile(
    r"\\+u([0-9a-fA-F]{4})|\\+x([0-9a-fA-F]{2})|\\+(.)|((?:%(?:25)*[0-9a-fA-F]{2})+)|&#x0*([0-9a-fA-F]{1,6});|&#0*([0-9]{1,7});"
)
_HAS_ESCAPES = re.compile(r"[\\%]|&#")
_WRAPPED = re.compile(r"[\w+/-]{40}(?:\\[rn]|\s)+[\w+/-]", re.ASCII)
"""Base64 in lines, whose ends may stand anywhere in a secret."""


def without(text: str, values: Sequence[str]) -> str:
    """A text in which none of these secrets stands in any of its forms; the longest come first."""
    for value in values:
        for form in _forms(value):
            if form in text:
                text = text.replace(form, REDACTED)
    others = [form for value in values if len(value) >= SHORTEST for form in _forms(value)]
    if _WRAPPED.search(text):
        for form in others:
            text = _in_lines(form).sub(REDACTED, text)
    return _without_escaped(text, others) if _HAS_ESCAPES.search(text) else text


def _without_escaped(text: str, forms: Sequence[str]) -> str:
    plain = _unescaped(text)
    for form in forms:
        bare = form.replace("\\", "")
        if bare and bare in plain:
            text = _escaped(form).sub(REDACTED, text)
            if bare in (plain := _unescaped(text)):  # in a way that is not known here; so the escapes have to go
                text = plain = plain.replace(bare, REDACTED)
    return text


@lru_cache(maxsize=256)
def _forms(value: str) -> tuple[str, ...]:
    """A secret as it is, and without escapes in its other forms."""
    if len(value) < SHORTEST:
        return (value,)
    data = value.encode(errors="surrogateescape")
    parts = [_inside_base64(data, offset) for offset in range(3)]
    safe = [part.replace("+", "-").replace("/", "_") for part in parts]
    return tuple(dict.fromkeys((value, *parts, *safe, data.hex(), data.hex().upper())))


def _inside_base64(data: bytes, offset: int) -> str:
    """What of a secret is always the same in base64 of a text in which so many bytes (modulo 3) stand before it.

    The first and last character also depend on what stands beside it, and are left out. They hold 4 bits at most.
    """
    encoded = base64.b64encode(b"\0" * offset + data).decode()
    return encoded[(0, 2, 3)[offset] : (offset + len(data)) * 8 // 6]


@lru_cache(maxsize=256)
def _in_lines(form: str) -> re.Pattern[str]:
    """A text that may go on in the next line anywhere."""
    return re.compile(r"(?:\\[rn]|\s)*".join(map(re.escape, form)))


@lru_cache(maxsize=256)
def _escaped(form: str) -> re.Pattern[str]:
    """A text, each of whose characters may be escaped."""
    return re.compile("".join(map(_any_way, form)))


def _any_way(character: str) -> str:
    code = ord(character)
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode(errors="surrogateescape"))
    escaped = rf"\\{{0,9}}(?i:u{code:04x}|x{code:02x})|\\{{0,9}}{re.escape(character)}"
    return rf"(?:{escaped}|(?i:{percent})|(?i:&#x0*{code:x};)|&#0*{code};)"


def _unescaped(text: str) -> str:
    """A text with its escapes undone and without the backslashes that are left."""
    return _ESCAPED.sub(_character, text).replace("\\", "")


def _character(match: re.Match[str]) -> str:
    four, two, plain, percent, hexadecimal, decimal = match.groups()
    if percent is not None:
        digits = re.sub(r"%(?:25)*(?=[0-9a-fA-F]{2})", "", percent)
        return bytes.fromhex(digits).decode(errors="replace")
    if plain is not None:
        return str(plain)
    code = int(four or two or hexadecimal or decimal, 10 if decimal else 16)
    return chr(code) if code < 0x110000 else match.group()
