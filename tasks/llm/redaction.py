"""Secrets: filled in when a request is sent, and removed from all that is stored or shown."""

import base64
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from tasks.console import rewrite_log_records
from tasks.llm.variables import variable
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import one_line, storable, visible
from tasks.rules.text.secrecy import REFERENCE, is_secret_name

REDACTED = "[redacted]"
_SHORTEST = 8
"""Shorter values are secrets only if the configuration refers to them, and are removed only in
their unchanged form: their other forms look like ordinary words.
"""
_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: quote(text, safe="", errors="surrogateescape"),
    lambda text: quote(text, errors="surrogateescape"),
    lambda text: re.sub(
        "%..", lambda match: match[0].lower(), quote(text, safe="", errors="surrogateescape")
    ),
)
_ORDINARY = re.compile(r"[^\W\d_]{1,15}|\d{1,15}")
"""Words and numbers: a reply may hold them, and any shorter value than `_SHORTEST`, without
repeating a secret.
"""
_used_variables: set[str] = set()
"""The variables that configured texts refer to, as far as they were filled in (`filled_in`)."""


def filled_in(text: str) -> str:
    """Return a configured text with the environment's values instead of its `${NAME}` references.

    Raises:
        UsageError: a variable is not set.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        value = variable(name)
        if value is None:
            raise UsageError(
                f"${{{name}}} in the configuration: the environment variable {name} is not set"
            )
        _used_variables.add(name)
        return value

    return REFERENCE.sub(value_of, text)


def filled_in_secrets(value: Any, *, is_secret: bool = False) -> Any:
    """Return nested parameters with the environment's values filled in only where a name looks like
    a secret.

    Raises:
        UsageError: a variable is not set.
    """
    if isinstance(value, Mapping):
        parameters = dict(value)
        for name, inner in value.items():
            if name != "properties":  # of a JSON schema, whose names are those of fields of a reply
                is_inner_secret = is_secret or is_secret_name(name)
                parameters[name] = filled_in_secrets(inner, is_secret=is_inner_secret)
        return parameters
    if isinstance(value, list | tuple):
        return [filled_in_secrets(inner, is_secret=is_secret) for inner in value]
    if is_secret and isinstance(value, str):
        return filled_in(value)
    return value


def redacted(text: str, *, is_reply: bool = False) -> str:
    """Return a text without this process's secrets: values that a configuration refers to or that
    are named as secrets.

    A model's reply keeps ordinary words and numbers, and passwords in addresses, which are not
    ours.
    """
    for value in _secrets():
        is_ordinary = len(value) < _SHORTEST or _ORDINARY.fullmatch(value)
        if not (is_reply and is_ordinary):
            for form in _forms(value):
                text = text.replace(form, REDACTED)
    if is_reply:
        return text
    return re.sub(r"(?<=://)[^/\s'\"]+@", f"{REDACTED}@", text)


@cache
def _forms(value: str) -> list[str]:
    """Return the forms of a secret: unchanged and in base64, each also escaped once or twice for
    JSON or a URL.
    """
    if len(value) < _SHORTEST:
        return [value]
    forms = {value}
    data = value.encode(errors="surrogateescape")
    # Where a longer text holds the value, base64 depends on the number of bytes before the value,
    # modulo 3. A character has six bits; those that also encode bytes around it are left out.
    for n_before in range(3):
        encoded = base64.b64encode(bytes(n_before) + data).decode()
        start = math.ceil(n_before * 8 / 6)
        end = (n_before + len(data)) * 8 // 6
        form = encoded[start:end]
        forms |= {form, form.replace("+", "-").replace("/", "_")}
    for _ in range(2):
        for form in list(forms):
            forms.update(escape(form) for escape in _ESCAPES)
    return sorted(forms, key=len, reverse=True)


def _secrets() -> list[str]:
    """Return the secrets, the longest first: one may begin with another."""
    values = []
    for name in os.environ:
        if name in _used_variables:
            shortest = 1
        elif _is_named_like_secret(name):
            shortest = _SHORTEST
        else:
            continue
        # Read only now: reading decodes, and this function runs for every reply.
        value = os.environ[name]
        if len(value) >= shortest:
            values.append(value)
    return sorted(values, key=len, reverse=True)


@cache
def _is_named_like_secret(name: str) -> bool:
    # KEYBOARD, TOKENIZERS, AUTHOR and PWD (the working directory) are no names of secrets.
    if re.search(r"(?i)KEY(?!BOARD)|TOKEN(?!IZ)|AUTH(?!OR(?!IZ))", name):
        return True
    return is_secret_name(name) and name != "PWD"


def safe(message: str) -> str:
    """Return a message in one line that can be stored and shown."""
    return one_line(redacted(storable(message)))


def guard_logs() -> None:
    """Remove secrets from every log record of this process, and make control characters in it
    visible.
    """
    rewrite_log_records("is_guard", lambda text: visible(redacted(text)))
