"""Only one machine writes a warehouse: a file there says which, and a counter in it that it still does.

Machines that share a folder need neither locks that reach from one to the other nor clocks that agree. Processes of one
machine share its place; the kernel's locks sort out what they do. Who finds another machine's file looks whether its
counter goes on, and takes over where it stands still for long. Who is not the owner any more writes nothing more.
"""

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
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.errors import WarehouseBusy, WarehouseError, cause_of, refusal_of_disk

Tell = Callable[[str], object]
_FILE, _PROCESSES, _CLAIMS = "machine.lock", "processes.lock", "claim.lock"


class Machine(NamedTuple):
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
    boot, machine = (
        Path(path).read_text(encoding="utf-8").strip() if os.access(path, os.R_OK) else ""
        for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")
    )
    name = f"{machine or f'{uuid.getnode():x}'} {socket.gethostname()}"
    return Machine(boot or name, name, socket.gethostname(), time.time() - _elapsed_s())


def _elapsed_s() -> float:
    """A clock that only runs forward, in seconds, also while the machine sleeps (where the system has such a clock)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Owner:
    """A process of the machine that writes a warehouse.

    Attributes:
        every_s: the counter goes on so often; it is looked at at this distance, too.
        take_over_after_s: how long it has to stand still; 0 with `--take-over`. Network file systems may show a file
            as it was 60 s ago.
        settling_s: how long one that takes over waits, to see whether another machine did so at the same moment.
    """

    every_s, take_over_after_s, settling_s = 10.0, 120.0, 70.0
    sleep: Callable[[float], object] = staticmethod(time.sleep)
    clock: Callable[[], float] = staticmethod(_elapsed_s)

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self._root, self._path, self._machine = root, root / _FILE, machine or this_machine()
        self._id, self._name = uuid.uuid4().hex, uuid.uuid4().hex
        self._seen_s, self._why_lost = float("-inf"), ""
        self._one_at_a_time, self._has_ended = threading.Lock(), threading.Event()

    def begin(self, tell: Tell | None = None) -> None:
        """Have this machine be the one that writes; `end` ends it.

        Another machine's counter is watched if there is somebody to `tell` why that takes time; otherwise, or if it
        goes on, this is refused.

        Raises:
            WarehouseBusy: another machine writes.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        self._processes = (self._root / _PROCESSES).open("a+")  # NFS locks only what is open for reading
        try:
            with (self._root / _CLAIMS).open("a+") as claims:
                fcntl.flock(claims, fcntl.LOCK_EX)
                fcntl.flock(self._processes, fcntl.LOCK_SH)
                self._claim(tell)
            self.look(must_write=True)
        except BaseException:
            self.end()
            raise
        threading.Thread(target=self._go_on, name="owner", daemon=True).start()

    def _claim(self, tell: Tell | None) -> None:
        while (found := self._read()) is None or not self._is_ours(found):
            if found is None:
                self._make()
                continue
            is_before_start = found.get("machine") == self._machine.name and found["at_s"] < self._machine.started_at_s
            if is_before_start or found.get("kernel") == self._machine.kernel:
                self._write(1)  # it is of this machine, before its last start or of an earlier version of this package
            elif self._has_stopped(found, tell):
                # Of machines that take over at once, the last to write stays; all others see that when they look again.
                self._write(1)
                self.sleep(self.settling_s)
        self._id = found["id"]

    def _make(self) -> None:
        """Make the file, unless somebody else just did."""
        try:
            with self._path.open("x") as file:
                file.write(self._text(1))
        except FileExistsError:
            pass
        except OSError:
            self._path.unlink(missing_ok=True)  # an empty one, as on a full disk, would pass for another machine's
            raise

    def _has_stopped(self, found: dict[str, Any], tell: Tell | None) -> bool:
        """Watch another machine's counter; False where it ended or became one of this machine.

        Raises:
            WarehouseBusy: it goes on, or is not to be watched.
        """
        where = f"{self._root}: {_host(found)}"
        if tell is None:
            raise WarehouseBusy(
                f"{where} writes this warehouse, or did so until it failed; run this command there, or "
                "`prbench aggregate` here to take over"
            )
        tell(f"{where} wrote here last; waiting up to {self.take_over_after_s:.0f} s to see whether it still does")
        for _ in range(round(self.take_over_after_s / self.every_s)):
            self.sleep(self.every_s)
            now = self._read()
            if now is None or self._is_ours(now):
                return False
            if now != found:
                raise WarehouseBusy(
                    f"{self._root}: {_host(now)} writes this warehouse, and only one machine can at a time; wait for "
                    "it, run this command there, or use another --warehouse"
                )
        tell(f"{where} no longer writes here; this machine takes over in {self.settling_s:.0f} s")
        return True

    def look(self, *, must_write: bool = False) -> None:
        """See whether this machine is the owner still, and let the counter go on if that is due.

        Raises:
            OSError: the folder cannot be read or written.
        """
        with self._one_at_a_time:
            if self._has_ended.is_set() or self._why_lost:
                return
            now_s, found = self.clock(), self._read()
            if found is None:
                self._why_lost = f"{self._path} was deleted, or another machine took over this warehouse and finished"
            elif found.get("id") != self._id:
                self._why_lost = f"{self._root}: {_host(found)} took over this warehouse"
            # One that was stopped for long may be about to be followed: it is seen to go on before it writes.
            elif must_write or now_s - self._seen_s > self.take_over_after_s / 2:
                self._write(found["counter"] + 1)
                self._seen_s = now_s  # as of the beginning: how long it took until others could see it is not known

    def why_lost(self) -> str | None:
        """Why this process must not write any more, in one line; None where it may."""
        try:
            self.look()
        except OSError as error:
            return f"{self._path}: cannot be read or written ({error.strerror}); another machine may have taken over"
        if not self._why_lost:
            return None
        return f"{self._why_lost}; nothing more is written, run again when no other machine writes"

    def end(self) -> None:
        """Stop; the file goes with the last process of this machine, so that another machine need not wait."""
        self._has_ended.set()
        with self._processes, self._one_at_a_time, suppress(OSError):
            fcntl.flock(self._processes, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (self._read() or {}).get("id") == self._id:
                self._path.unlink()

    def elsewhere(self) -> str | None:
        """The other machine that writes, or did so until it failed; None where there is none."""
        found = self._read()
        return None if found is None or self._is_ours(found) else _host(found)

    def _is_ours(self, found: dict[str, Any]) -> bool:
        return found.get("kernel") == self._machine.kernel and "id" in found

    def _read(self) -> dict[str, Any] | None:
        try:
            content = self._path.read_bytes()
            return dict(json.loads(content))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return {"content": content}  # whoever wrote it: it has to change, or it is followed

    def _write(self, counter: int) -> None:
        temporary = self._path.with_name(f".{self._name}.{_FILE}")
        temporary.write_text(self._text(counter), encoding="utf-8")
        temporary.replace(self._path)

    def _text(self, counter: int) -> str:
        kernel, machine, host, _ = self._machine
        own = {"id": self._id, "counter": counter, "host": host, "machine": machine, "kernel": kernel}
        return json.dumps({**own, "process": os.getpid(), "at_s": time.time()})

    def _go_on(self) -> None:
        while not self._has_ended.wait(self.every_s):
            with suppress(OSError):  # `why_lost` says so before anything is written
                self.look(must_write=True)


def _host(found: dict[str, Any]) -> str:
    return str(found.get("host", "another machine"))


_lock = threading.RLock()
_kept: dict[Path, Owner] = {}
_needed: Counter[Path] = Counter()
os.register_at_fork(after_in_child=_kept.clear)


@contextmanager
def only_machine(root: Path, tell: Tell | None = None) -> Iterator[None]:
    """Be of the only machine that writes this warehouse; other processes of it may write, too.

    Raises:
        WarehouseBusy: another machine writes; see `Owner.begin` for `tell`.
    """
    place = _place(root)
    with _lock:
        if place not in _kept:
            owner = Owner(root)
            try:
                owner.begin(tell)
            except OSError as error:
                raise WarehouseError(f"{root}: cannot be written: {cause_of(error, root)}") from error
            _kept[place] = owner
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
    kept = [owner for root, owner in list(_kept.items()) if place == root or root in place.parents]
    return next((why for owner in kept if (why := owner.why_lost())), None)


def refuse_if_lost(path: Path) -> None:
    """Write nothing more below this path where another machine took over.

    Raises:
        WarehouseBusy: one has.
    """
    if why := why_lost(path):
        raise WarehouseBusy(why)


@lru_cache(256)
def _place(path: Path) -> Path:
    """A folder under the one name that all its names lead to; it is asked for with every call that is made."""
    return path.resolve()
