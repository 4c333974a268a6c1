"""Secrets come from the environment, are put in at the moment of the call, and are taken out of whatever is kept."""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from tasks.console import rewrite_log_records
from tasks.llm.environment import variable
from tasks.llm.transport.disguises import REDACTED, SHORTEST, without
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import one_line, storable
from tasks.rules.text.secrecy import REFERENCE, is_secret_name

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

    Also in the forms of them that `disguises` knows. In a model's answer, what may be an ordinary word or number stays,
    and so does a password in an address: it is none of ours.
    """
    values = _secrets()
    text = without(text, [v for v in values if not _ORDINARY.fullmatch(v)] if is_answer else values)
    return text if is_answer else _URL_CREDENTIALS.sub(f"{REDACTED}@", text)


def _secrets() -> list[str]:
    """The longest first: one may begin with another."""
    # Each look at a value of `os.environ` decodes it, and this is done for every reply.
    named = {name: os.environ[name] for name in os.environ if name in _referenced or _is_named_like_one(name)}
    values = (value for name, value in named.items() if len(value) >= (1 if name in _referenced else SHORTEST))
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
