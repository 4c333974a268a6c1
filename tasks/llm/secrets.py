"""Secrets come from the environment, are put in at the moment of the call, and are taken out of whatever is kept."""

import logging
import os
import re
from typing import Any

from tasks.rules.errors import UsageError
from tasks.rules.text import one_line, storable

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")
_SHORTEST_SECRET = 8
_REDACTED = "[redacted]"
_referenced: set[str] = set()


def filled_in(text: str) -> str:
    """A configured text with the environment's values in the places of its `${NAME}` references.

    Raises:
        UsageError: a variable is not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise UsageError(f"${{{name}}} in the configuration: the environment variable {name} is not set")
        _referenced.add(name)
        return os.environ[name]

    return _REFERENCE.sub(value, text)


def redacted(text: str) -> str:
    """A text without the secrets of this process: values that a configuration refers to or whose name says so."""
    # The longest first: one may begin with another.
    for name, value in sorted(os.environ.items(), key=lambda item: -len(item[1])):
        is_secret = name in _referenced or (_SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET)
        if is_secret and value and value in text:
            text = text.replace(value, _REDACTED)
    return _URL_CREDENTIALS.sub(f"{_REDACTED}@", text)


def safe(message: str) -> str:
    """A message in one line that can be stored and shown."""
    return one_line(redacted(storable(message)))


def guard_logs() -> None:
    """Take secrets out of every log record of this process, whoever makes it and at whatever level."""
    make = logging.getLogRecordFactory()
    if getattr(make, "is_guard", False):
        return

    def guarded(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            return record  # a message that does not fit its arguments; logging says so itself
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        if redacted(message) != message or redacted(trace) != trace:
            record.msg, record.args = "\n".join(filter(None, (redacted(message), redacted(trace)))), ()
            record.exc_info = None
        return record

    guarded.is_guard = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(guarded)
