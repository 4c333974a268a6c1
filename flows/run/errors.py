"""Errors in one line, with their exit code."""

import errno
from pathlib import Path

_OUT_OF_FILES = "too many files are open: raise the limit of `ulimit -n`, or lower `limits.concurrency`"


def explained(error: BaseException) -> tuple[int, str]:
    """The exit code of an error, and one line that says what is wrong, where, and what to do."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code, line = _explained(error)
    return code, f"{line}; {_OUT_OF_FILES}" if _is_out_of_files(error) else line


def _is_out_of_files(error: BaseException | None) -> bool:
    """Whether an error goes back to one of opening a file; DuckDB has only a text for it."""
    if error is None:
        return False
    is_one = isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}
    return is_one or "Too many open files" in str(error) or _is_out_of_files(error.__cause__ or error.__context__)


def _explained(error: BaseException) -> tuple[int, str]:
    from tasks.llm import safe
    from tasks.rules.errors import PipelineError
    from warehouse import WarehouseError, refusal_of_disk

    if isinstance(error, OSError) and error.filename is not None:
        if refusal := refusal_of_disk(error, Path(error.filename)):
            return 1, f"{error.filename}: {refusal}"
        return 1, f"{error.filename}: {error.strerror}; check the path and its permissions"
    if isinstance(error, PipelineError | WarehouseError):
        return getattr(error, "exit_code", 1), str(error)
    return 1, f"unexpected {type(error).__name__}: {safe(str(error))} (run it with -v to see where)"


def is_crash(error: object) -> bool:
    """Whether a batch failed in a way that running it again may help against.

    A call that failed is a row, and retried by the gateway or the next run.
    """
    from tasks.rules.errors import PipelineError
    from warehouse import WarehouseError

    return not isinstance(error, PipelineError | WarehouseError)
