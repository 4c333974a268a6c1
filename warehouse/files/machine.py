"""Which machine this is. All processes of one machine share a kernel, whose locks sort out what they do."""

import os
import socket
import time
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID, _MACHINE_ID = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")


@dataclass(frozen=True)
class Machine:
    """A machine between two starts of it.

    Containers of one host have one `kernel`, as they share its locks. `name` stays when the machine is started again;
    machines that were copied from one image may share it. `started_at_s` is by its own clock (Unix time).
    """

    kernel: str
    name: str
    host: str
    started_at_s: float


@cache
def this_machine() -> Machine:
    """The machine that this process is on; without a boot id (macOS), it is known by its network card and name."""
    host = socket.gethostname()
    name = f"{_content(_MACHINE_ID) or f'{uuid.getnode():x}'} {host}"
    return Machine(_content(_BOOT_ID) or name, name, host, time.time() - elapsed_s())


def elapsed_s() -> float:
    """A clock that only runs forward, in seconds, also while the machine sleeps (where the system has such a clock)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if os.access(path, os.R_OK) else ""
