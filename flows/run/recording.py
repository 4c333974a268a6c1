"""Whether Prefect records what is done: stages are then its flows and batches its tasks, elsewhere plain functions.

It does where a server is known: importing Prefect takes 3 s, and a server of one's own 10 s to start, which would be
most of a short run. Recording is not the work: where it fails, it is given up for the rest of the run.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tasks.console import notice

_lock = threading.Lock()
_PATIENCE_S, _BACKGROUND_PATIENCE_S = 10.0, 60.0
_patience_s: ContextVar[float] = ContextVar("patience_s", default=_PATIENCE_S)


@dataclass
class _OfProcess:
    """What holds for the whole process: Prefect sends events and log lines from threads of its own."""

    is_decided: bool | None = None
    is_given_up: bool = False


_state = _OfProcess()


class NotBegunError(Exception):
    """Prefect failed before it began the work that it was to run and record."""


def is_recorded() -> bool:
    """Whether Prefect records what is done: as decided, else if the environment names a server."""
    if _state.is_given_up:
        return False
    return bool(os.environ.get("PREFECT_API_URL")) if _state.is_decided is None else _state.is_decided


@contextmanager
def recording(is_on: bool) -> Iterator[None]:
    """Have Prefect record the work of the block, or not."""
    before = _state.is_decided
    _state.is_decided, _state.is_given_up = is_on, False
    try:
        yield
    finally:
        _state.is_decided = before


def give_up_recording(why: str) -> None:
    """Have nothing more of the run recorded, and say so the first time; outside a recorded run, do nothing."""
    with _lock:
        if not _state.is_decided or _state.is_given_up:
            return
        _state.is_given_up = True
    notice(
        f"{why}; the rest of this run is not recorded in Prefect, which may keep showing it as running. The run "
        "continues; `prbench status --runs` shows how it ends"
    )


def has_given_up() -> bool:
    """Whether recording was given up, so that the server is not waited for again."""
    return _state.is_given_up


def trust_again() -> None:
    """Use the server again, since it answers."""
    _state.is_given_up = False


def patience_s() -> float:
    """How long the server is waited for, in seconds, before recording is given up."""
    return _patience_s.get()


def be_patient() -> None:
    """In a task that nothing waits for, wait longer: it holds nothing up, and a busy server is not a lost one."""
    _patience_s.set(_BACKGROUND_PATIENCE_S)
