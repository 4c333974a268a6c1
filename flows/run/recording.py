"""Whether Prefect records what is done: stages are then its flows and batches its tasks, elsewhere plain functions.

It does where a server is known: importing Prefect takes 3 s, and a server of one's own 10 s to start, which would be
most of a short run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_recorded: ContextVar[bool | None] = ContextVar("recorded", default=None)


def is_recorded() -> bool:
    """Whether Prefect records what is done here: as decided, else if the environment names a server."""
    decided = _recorded.get()
    return bool(os.environ.get("PREFECT_API_URL")) if decided is None else decided


@contextmanager
def recording(is_on: bool) -> Iterator[None]:
    """Have Prefect record the work of the block, or not."""
    token = _recorded.set(is_on)
    try:
        yield
    finally:
        _recorded.reset(token)
