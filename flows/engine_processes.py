"""The processes in which Prefect's runner does its runs (`python -m prefect.engine`), ended in good order."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_LOOK_EVERY_S = 0.2
_PROCESSES = Path("/proc")
_MODULE = b"prefect.engine"


def end_engines(session: int, grace_s: float) -> int:
    """Ask the engines of a session to end, by SIGTERM, and wait for them; how many there were.

    What has not ended after `grace_s` is killed. An engine that begins meanwhile is asked as well.
    """
    asked = set[int]()
    deadline_s = time.monotonic() + grace_s
    while left := set(_engines_of(session)):
        if time.monotonic() > deadline_s:
            _send(left, signal.SIGKILL)
            break
        # Once each: a second signal is how a person says not to wait.
        _send(left - asked, signal.SIGTERM)
        asked |= left
        time.sleep(_LOOK_EVERY_S)
    return len(asked)


def _send(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended by itself


def _engines_of(session: int) -> Iterator[int]:
    """Engines by their session: they stay in it also when the runner that started them is gone."""
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            is_one = os.getsid(int(folder.name)) == session and _MODULE in _arguments(folder)
        except (ProcessLookupError, FileNotFoundError):
            continue  # it has ended between two looks
        if is_one:
            yield int(folder.name)


def _arguments(folder: Path) -> list[bytes]:
    """Nothing for a process that has ended and is not waited for yet."""
    return (folder / "cmdline").read_bytes().split(b"\0")
