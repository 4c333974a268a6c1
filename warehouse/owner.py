"""Only one machine writes a warehouse."""

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from warehouse.errors import WarehouseBusy, WarehouseError, cause_of, refusal_of_disk

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


Tell = Callable[[str], object]
_FILE, PROCESSES = "machine.lock", "processes.lock"


@dataclass(frozen=True)
class Pace:
    """How often a heartbeat changes, after how many looks at that distance without a change it has expired, and time.

    Network file systems may show a file as it was up to 60 s ago, so it must not expire before that.
    """

    every_s: float = 10.0
    looks: int = 9
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = elapsed_s

    @property
    def expires_s(self) -> float:
        """How long others watch before they take over."""
        return self.every_s * self.looks

    @property
    def settling_s(self) -> float:
        """How long one that takes over waits, to see whether another machine did so at the same moment: over 60 s."""
        return 7 * self.every_s


class Heartbeat:
    """What a process knows of its machine's heartbeat in a warehouse; all processes of the machine write one file."""

    def __init__(self, root: Path, machine: Machine | None = None, pace: Pace | None = None) -> None:
        self._root, self._path = root, root / _FILE
        self._machine, self._pace = machine or this_machine(), pace or Pace()
        self._tenure, self._name, self._beats = uuid.uuid4().hex, uuid.uuid4().hex, 0
        self._seen_s = float("-inf")
        self._why_lost: str | None = None
        self._one_at_a_time, self._has_ended = threading.Lock(), threading.Event()

    def begin(self, tell: Tell | None = None) -> None:
        """Have this machine be the one that writes; `end` ends it.

        One of another machine is watched if there is somebody to `tell` why that takes time; otherwise, or if it
        changes, this is refused.

        Raises:
            WarehouseBusy: another machine writes.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        self._processes = (self._root / PROCESSES).open("a+")  # NFS locks only what is open for reading
        try:
            self._begin(tell)
        except BaseException:
            self.end()
            raise
        threading.Thread(target=self._go_on, name="heartbeat", daemon=True).start()

    def _begin(self, tell: Tell | None) -> None:
        while True:
            self._claim(tell)
            fcntl.flock(self._processes, fcntl.LOCK_SH)
            self.beat()
            if self._why_lost is None:
                return
            # The last process of this machine ended and removed the file before it knew of this one.
            fcntl.flock(self._processes, fcntl.LOCK_UN)
            self._why_lost = None

    def beat(self) -> None:
        """Change the file, or find that another machine has taken over.

        Raises:
            OSError: the folder cannot be read or written.
        """
        with self._one_at_a_time:
            if self._has_ended.is_set() or self._why_lost is not None:
                return
            now_s, found = self._pace.clock(), self._read()
            if found is None:
                self._why_lost = f"{self._path} was deleted, or another machine took over this warehouse and finished"
            elif found.get("tenure") != self._tenure:
                self._why_lost = (
                    f"{self._root}: this machine did not answer for {self._pace.expires_s:.0f} s, and "
                    f"{_host(found)} took over this warehouse"
                )
            else:
                self._beats += 1
                self._write(self._beats)
            # As of its beginning: how long it took until others could see it is not known.
            self._seen_s = now_s

    def why_lost(self) -> str | None:
        """Why this process must not write any more, in one line; None where it may.

        A process that was stopped looks first: meanwhile another machine may have taken over.
        """
        is_late = self._pace.clock() - self._seen_s > self._pace.expires_s / 2
        if self._why_lost is None and is_late:
            try:
                self.beat()
            except OSError as error:
                return f"{self._path}: cannot be written ({error.strerror}), so another machine may have taken over"
        return self._why_lost and f"{self._why_lost}; nothing more is written, run again when no other machine writes"

    def end(self) -> None:
        """Stop; the file goes with the last process of this machine, so that another machine need not wait."""
        self._has_ended.set()
        with self._processes, self._one_at_a_time, suppress(OSError):
            fcntl.flock(self._processes, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = self._read()
            if found is not None and found.get("tenure") == self._tenure:
                self._path.unlink()

    def elsewhere(self) -> str | None:
        """The other machine whose heartbeat is here, which may write; None where there is none."""
        found = self._read()
        return None if found is None or self._is_ours(found) else _host(found)

    def _claim(self, tell: Tell | None) -> None:
        """Make the file, find one of this machine, or take over one that has expired.

        A tenure begins where one machine follows another; all processes that write in it know it.
        """
        has_settled = False
        while True:
            found = self._read()
            if found is None:
                if self._has_made():
                    return
                continue
            if self._is_ours(found):
                self._tenure = found["tenure"]
                if found["beats"] > 0 or has_settled:
                    return
            elif not self._has_expired(found, tell):
                continue
            # Of machines that take over at once, the last to write stays; all others see that when they look again.
            self._write(beats=0)
            self._pace.sleep(self._pace.settling_s)
            has_settled = True

    def _has_expired(self, found: dict[str, Any], tell: Tell | None) -> bool:
        """Watch the heartbeat of another machine; False where it ended or became one of this machine.

        Raises:
            WarehouseBusy: it goes on, or is not to be watched.
        """
        host = _host(found)
        where = f"{self._root}: {host}"
        if tell is None:
            raise WarehouseBusy(
                f"{where} writes this warehouse, or did so until it failed; run this command there, or "
                "`prbench aggregate` here to take over"
            )
        tell(f"{where} wrote here last; waiting up to {self._pace.expires_s:.0f} s to see whether it still does")
        for _ in range(self._pace.looks):
            self._pace.sleep(self._pace.every_s)
            now = self._read()
            if now is None or self._is_ours(now):
                return False
            if now != found:
                raise WarehouseBusy(
                    f"{self._root}: {_host(now)} writes this warehouse, and only one machine can at a time; wait for "
                    "it, run this command there, or use another --warehouse"
                )
        tell(f"{where} no longer writes here; this machine takes over in {self._pace.settling_s:.0f} s")
        return True

    def _is_ours(self, found: dict[str, Any]) -> bool:
        """Whether a heartbeat is of this machine, or of its time before it was started again."""
        if found.get("kernel") == self._machine.kernel:
            return True
        return found.get("machine") == self._machine.name and found["at_s"] < self._machine.started_at_s

    def _read(self) -> dict[str, Any] | None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return dict(json.loads(content))
        except (ValueError, TypeError):
            # Whoever wrote it: it has to change, or it expires.
            return {"content": content}

    def _write(self, beats: int) -> None:
        temporary = self._temporary(beats)
        temporary.replace(self._path)

    def _has_made(self) -> bool:
        """Make the file, unless there is one: of all that try, one does."""
        temporary = self._temporary(beats=1)
        try:
            try:
                os.link(temporary, self._path)
            except OSError:  # there is one, or the file system has no links
                with self._path.open("xb") as file:
                    file.write(temporary.read_bytes())
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def _temporary(self, beats: int) -> Path:
        machine = self._machine
        # Not by the process id: containers of one machine have the same ones.
        path = self._path.with_name(f".{self._name}.{_FILE}")
        path.write_text(json.dumps({
            "host": machine.host, "process": os.getpid(), "kernel": machine.kernel, "machine": machine.name,
            "tenure": self._tenure, "beats": beats, "at_s": time.time(),
        }))  # fmt: skip
        return path

    def _go_on(self) -> None:
        while not self._has_ended.wait(self._pace.every_s):
            with suppress(OSError):  # `why_lost` says so before anything is written
                self.beat()


def _host(found: dict[str, Any]) -> str:
    return str(found.get("host", "another machine"))


_lock = threading.RLock()
_kept: dict[Path, Heartbeat] = {}
_needed: Counter[Path] = Counter()
os.register_at_fork(after_in_child=_kept.clear)


@contextmanager
def only_machine(root: Path, tell: Tell | None = None) -> Iterator[None]:
    """Be of the only machine that writes this warehouse; other processes of it may write, too.

    Raises:
        WarehouseBusy: another machine writes; see `Heartbeat.begin` for `tell`.
    """
    place = _place(root)
    with _lock:
        if place not in _kept:
            heartbeat = Heartbeat(root)
            try:
                heartbeat.begin(tell)
            except OSError as error:
                raise WarehouseError(f"{root}: cannot be written: {cause_of(error, root)}") from error
            _kept[place] = heartbeat
            _needed[place] = 0
        _needed[place] += 1
    try:
        yield
    except OSError as error:
        # A file that is open does not say its name when the disk refuses its content.
        error.filename = error.filename or (str(root) if refusal_of_disk(error, root) else None)
        raise
    finally:
        with _lock:
            _needed[place] -= 1
            if _needed[place] == 0 and place in _kept:
                _kept.pop(place).end()


def why_lost(path: Path) -> str | None:
    """Why nothing more may be written below this path, in one line: another machine took over; None where it may."""
    place = _place(path)
    for root, heartbeat in list(_kept.items()):
        if (place == root or root in place.parents) and (why := heartbeat.why_lost()) is not None:
            return why
    return None


def refuse_if_lost(path: Path) -> None:
    """Write nothing more below this path where another machine took over.

    Raises:
        WarehouseBusy: one has.
    """
    if (why := why_lost(path)) is not None:
        raise WarehouseBusy(why)


@lru_cache(256)
def _place(path: Path) -> Path:
    """A folder under the one name that all its names lead to; it is asked for with every call that is made."""
    return path.resolve()
