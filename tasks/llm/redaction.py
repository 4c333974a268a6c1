"""Secrets come from the environment, are put in at the moment of the call, and are taken out of whatever is kept."""

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from tasks.console import rewrite_log_records
from tasks.llm.environment import variable
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import one_line, storable
from tasks.rules.text.secrecy import REFERENCE, is_secret_name

REDACTED = "[redacted]"
_SHORTEST = 8
"""Shorter values are looked for as they are alone: their other forms are like ordinary words."""
_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: quote(text, safe="", errors="surrogateescape"),
    lambda text: quote(text, errors="surrogateescape"),
    lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="", errors="surrogateescape")),
)
_SECRET_NAME = re.compile(r"KEY(?!BOARD)|TOKEN(?!IZ)|SECRET|PASSWORD|CREDENTIAL|AUTH(?!OR(?!IZ))", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")
_ORDINARY = re.compile(r".{0,7}|[^\W\d_]{8,15}|\d{8,15}", re.DOTALL)
"""Values that an answer may hold without repeating a secret: words and numbers."""
_referenced: set[str] = set()


def filled_in(text: str) -> str:
    """A configured text with the environment's values in the places of its `${NAME}` references.

    Raises:
        UsageError: a variable is not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if (found := variable(name)) is None:
            raise UsageError(f"${{{name}}} in the configuration: the environment variable {name} is not set")
        _referenced.add(name)
        return found

    return REFERENCE.sub(value, text)


def filled_in_secrets(value: Any, *, is_secret: bool = False) -> Any:
    """Nested parameters with the environment's values in what is named like a secret; nothing else may refer to it.

    Raises:
        UsageError: a variable is not set.
    """
    if isinstance(value, Mapping):
        return {
            name: inner
            if name == "properties"
            else filled_in_secrets(inner, is_secret=is_secret or is_secret_name(name))
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [filled_in_secrets(inner, is_secret=is_secret) for inner in value]
    return filled_in(value) if is_secret and isinstance(value, str) else value


def redacted(text: str, *, is_answer: bool = False) -> str:
    """A text without the secrets of this process: values that a configuration refers to or whose name says so.

    In a model's answer, what may be an ordinary word or number stays, and so does a password in an address: it is none
    of ours.
    """
    for value in _secrets():
        if not (is_answer and _ORDINARY.fullmatch(value)):
            for form in _forms(value):
                text = text.replace(form, REDACTED)
    return text if is_answer else _URL_CREDENTIALS.sub(f"{REDACTED}@", text)


@cache
def _forms(value: str) -> list[str]:
    """A secret as it is and in base64, both also as they stand in JSON or a URL, or in one within another."""
    if len(value) < _SHORTEST:
        return [value]
    forms = {value}
    data = value.encode(errors="surrogateescape")
    for offset in range(3):  # how many bytes stand before it modulo 3; characters that depend on others are left out
        encoded = base64.b64encode(bytes(offset) + data).decode()[(0, 2, 3)[offset] : (offset + len(data)) * 8 // 6]
        forms |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    for _ in range(2):
        forms |= {escape(form) for form in forms for escape in _ESCAPES}
    return sorted(forms, key=len, reverse=True)


def _secrets() -> list[str]:
    """The longest first: one may begin with another."""
    # Each look at a value of `os.environ` decodes it, and this is done for every reply.
    named = {name: os.environ[name] for name in os.environ if name in _referenced or _is_named_like_one(name)}
    values = (value for name, value in named.items() if len(value) >= (1 if name in _referenced else _SHORTEST))
    return sorted(values, key=len, reverse=True)


@cache
def _is_named_like_one(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def safe(message: str) -> str:
    """A message in one line that can be stored and shown."""
    return one_line(redacted(storable(message)))


def guard_logs() -> None:
    """Take secrets out of every log record of this process, whoever makes it and at whatever level."""
    rewrite_log_records("is_guard", redacted)
