"""Changing the texts of all log records of this process, whoever makes them and at whatever level."""

import logging
from collections.abc import Callable
from typing import Any


def rewrite_log_records(mark: str, rewritten: Callable[[str], str]) -> None:
    """Have messages and tracebacks of log records rewritten from now on, once for each `mark`."""
    make = logging.getLogRecordFactory()
    if getattr(make, mark, False):
        return

    def guarded(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            return record  # a message that does not fit its arguments; logging says so itself
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        kept = rewritten(message), rewritten(trace)
        if kept != (message, trace):
            record.msg, record.args, record.exc_info = "\n".join(filter(None, kept)), (), None
        return record

    vars(guarded).update({**vars(make), mark: True})  # what it is recognised by stays known
    logging.setLogRecordFactory(guarded)
