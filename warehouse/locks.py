"""The locks of a warehouse (`locks.md`): locks of the kernel, and a file that names the one machine
that may write the warehouse.

Each lock of the kernel is on a file of its own: the lock that runs share, locks that one process
holds alone, and the life sign of each run. The kernel releases a lock when its process ends, in
whatever way.

The machine that may write is the owner. It rewrites its file as long as one of its processes works;
all of them may write, and locks of the kernel coordinate them. A process of another machine that
finds the file watches it, and takes over if the file does not change for long enough. A process
whose machine is no longer the owner writes nothing more. This needs neither locks between machines
nor synchronised clocks.
"""

import fcntl
import json
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from warehouse.errors import WarehouseBusy, explaining

_LOCKS = Path("/proc/locks")
"""The locks of this machine; only Linux has this file."""


@contextmanager
def file_lock(path: Path, *, wait: bool, is_shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, exclusive or shared; with `wait`, wait for a conflicting holder.

    Raises:
        WarehouseBusy: without `wait`, if a conflicting lock is held; the message names the holders'
            process ids.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = _holders_are(_holders(os.fstat(file.fileno()).st_ino))
            raise WarehouseBusy(
                f"{path.parent}: {who} at work on this warehouse; wait for it, or use another"
                " --warehouse"
            ) from error
        yield


def _holders_are(process_ids: list[str]) -> str:
    """Return the holders of a lock with the verb, such as `process 12 is`."""
    if not process_ids:
        return "another process is"
    if len(process_ids) == 1:
        return f"process {process_ids[0]} is"
    return f"processes {', '.join(process_ids)} are"


def _holders(inode: int) -> list[str]:
    """Return the ids of the processes that hold a lock on a file; empty where the system does not
    say.
    """
    ids = set()
    if _LOCKS.exists():
        for line in _LOCKS.read_text(encoding="utf-8").splitlines():
            _, kind, _, _, process_id, file, *_ = line.split()
            if kind == "FLOCK" and file.endswith(f":{inode}"):
                ids.add(process_id)
    return sorted(ids, key=int)


@contextmanager
def life_sign(folder: Path, name: str) -> Iterator[None]:
    """Hold a life sign under a unique name: a locked file, which is removed at the end.

    The lock is a shared one; `remove_unless_held` fails to get an exclusive one as long as it is
    held.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{quote(name, safe='')}.lock"
    with path.with_suffix(".tmp").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        # Renamed when it is locked, so that nobody finds it unlocked.
        Path(file.name).replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def remove_unless_held(path: Path) -> bool:
    """Remove the file of a lock that nobody holds; return whether it is gone."""
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


Tell = Callable[[str], object]
"""A function that gets lines for users about a wait."""


class Machine(NamedTuple):
    """A machine from one boot to the next.

    Containers of one host share its `kernel` and its locks. `started_at_s` is Unix time by the
    machine's own clock.
    """

    kernel: str
    host: str
    started_at_s: float


@cache
def this_machine() -> Machine:
    """Return the machine that this process is on.

    Without a boot id (macOS), it is known by its network card and name.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    host = socket.gethostname()
    kernel = (
        boot.read_text(encoding="utf-8").strip() if boot.exists() else f"{uuid.getnode():x} {host}"
    )
    return Machine(kernel, host, time.time() - _elapsed_s())


def _elapsed_s() -> float:
    """Return a monotonic time in seconds that includes sleep, if the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Owner:
    """A process on the machine that owns a warehouse, or on one that tries to own it.

    Attributes:
        interval_s: seconds between two writes of the file, and between two reads of it.
        read_valid_s: seconds for which `renew` relies on its last read of the file.
        takeover_after_s: seconds for which another machine's file must not change before a
            takeover; 0 with `--take-over`. Network file systems may show a file as it was 60 s ago.
        settling_s: seconds to wait after a takeover, to see whether another machine took over at
            the same moment.
    """

    interval_s = 10.0
    read_valid_s = 1.0
    takeover_after_s = 120.0
    settling_s = 70.0
    sleep: Callable[[float], object] = staticmethod(time.sleep)
    clock: Callable[[], float] = staticmethod(_elapsed_s)

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self._root = root
        self._path = root / "machine.lock"
        self._machine = machine or this_machine()
        # The id of the file: all processes of the owning machine adopt it from the first one.
        self._id = uuid.uuid4().hex
        self._written_s = float("-inf")
        self._read_s = float("-inf")
        self.n_users = 0
        self._why_lost: str | None = None
        self._one_at_a_time = threading.Lock()
        self._has_ended = threading.Event()

    def begin(self, tell: Tell | None = None) -> None:
        """Make this machine the owner, until `end`.

        With `tell`, which gets lines about the wait, another machine's file is watched first;
        without it, or if the file changes, the call is refused. While another process of this
        machine begins, the call waits for it, with or without `tell`.

        Raises:
            WarehouseBusy: another machine writes.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        # NFS locks only what is open for reading.
        self._processes = (self._root / "processes.lock").open("a+")
        try:
            with (self._root / "claim.lock").open("a+") as claims:
                fcntl.flock(claims, fcntl.LOCK_EX)
                fcntl.flock(self._processes, fcntl.LOCK_SH)
                holder = self._read()
                # Until the file names this machine: others may change it during `_claim`.
                while holder is None or holder.get("kernel") != self._machine.kernel:
                    self._claim(holder, tell)
                    holder = self._read()
                self._id = holder.get("id", "")
            self.write_file()
        except BaseException:
            self.end()
            raise
        threading.Thread(target=self.keep_alive, name="owner", daemon=True).start()

    def _claim(self, holder: dict[str, Any] | None, tell: Tell | None) -> None:
        """Try to create the file, or to take it over from this machine's earlier boot or from a
        machine that stopped writing; the caller reads who has it then.

        Raises:
            WarehouseBusy: another machine writes, or may do so.
        """
        if holder is None:
            with suppress(FileExistsError), self._path.open("x"):
                try:
                    self.write_file()
                except OSError:
                    self._path.unlink()  # an empty file would look like another machine's
                    raise
            return
        if (
            holder["host"] == self._machine.host
            and holder.get("at_s", math.inf) < self._machine.started_at_s
        ):
            self.write_file()
            return
        where = f"{self._root}: {holder['host']}"
        busy = WarehouseBusy(
            f"{where} writes this warehouse, or did so until it failed, and only one machine can at"
            " a time; wait for it, run this command there, or run `prbench aggregate` here to take"
            " over"
        )
        if tell is None:
            raise busy
        tell(
            f"{where} wrote here last; waiting up to {self.takeover_after_s:.0f} s to see whether"
            " it still does"
        )
        for _ in range(round(self.takeover_after_s / self.interval_s)):
            self.sleep(self.interval_s)
            current = self._read()
            if current is None:
                return
            if current != holder:
                raise busy
        tell(f"{where} no longer writes here; this machine takes over in {self.settling_s:.0f} s")
        # If several machines take over at once, the last writer is the owner; the others see that
        # at their next read.
        self.write_file()
        self.sleep(self.settling_s)

    def renew(self, *, must_write: bool = False) -> str | None:
        """Rewrite the file, if that is due or with `must_write`, unless another machine took over.

        Return why this process must not write any more, in one line; None if it may write.
        """
        with self._one_at_a_time:
            now_s = self.clock()
            if not must_write and now_s - self._read_s < self.read_valid_s:
                return self._why_lost
            try:
                holder = self._read()
                if self._why_lost or self._has_ended.is_set():
                    return self._why_lost  # after `end` the file may be another owner's
                if holder is None or holder.get("id", "") != self._id:
                    who = "another machine" if holder is None else holder["host"]
                    advice = "nothing more is written, run again when no other machine writes"
                    self._why_lost = f"{self._root}: {who} took over this warehouse; {advice}"
                # After a long pause another machine may be taking over: it must see this file
                # before it writes.
                elif must_write or now_s - self._written_s > self.takeover_after_s / 2:
                    self.write_file()
                self._read_s = now_s  # after the write: a later call must report its error again
            except OSError as error:
                return (
                    f"{self._path}: cannot be read or written ({error.strerror}); another machine"
                    " may take over"
                )
            return self._why_lost

    def end(self) -> None:
        """Stop writing; the last process of this machine removes the file, so that another machine
        need not wait.
        """
        self._has_ended.set()
        with self._processes, self._one_at_a_time, suppress(OSError):
            # Refused while another process of this machine works: it still needs the file.
            fcntl.flock(self._processes, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (self._read() or {}).get("id") == self._id:
                self._path.unlink()

    def other_host(self) -> str | None:
        """Return the name of the other machine that writes, or did so until it failed; None if
        there is none.
        """
        holder = self._read()
        if holder is None or holder.get("kernel") == self._machine.kernel:
            return None
        return str(holder["host"])

    def _read(self) -> dict[str, Any] | None:
        """Return the content of the file, always with a `host`; None if there is no file."""
        with suppress(FileNotFoundError):
            content = self._path.read_bytes()
            holder = {"host": "another machine"}
            try:
                return {**holder, **json.loads(content)}
            except (ValueError, TypeError):
                # A file that cannot be understood is taken over unless its content changes.
                return {**holder, "content": content}
        return None

    def write_file(self) -> None:
        """Write the file with the id, this machine, and the time."""
        now_s = self.clock()
        temporary = self._path.with_name(f".{uuid.uuid4().hex}.machine.lock")
        document = {
            "id": self._id,
            "host": self._machine.host,
            "kernel": self._machine.kernel,
            "at_s": time.time(),
        }
        temporary.write_text(json.dumps(document), encoding="utf-8")
        temporary.replace(self._path)
        # The time before the write, because others may see the file from then on.
        self._written_s = now_s

    def keep_alive(self) -> None:
        """Rewrite the file from time to time until `end`."""
        while not self._has_ended.wait(self.interval_s):
            self.renew(must_write=True)


_lock = threading.RLock()
_owners: dict[Path, Owner] = {}
"""The warehouses that this process may write, each with its owner; `_lock` guards changes.

A forked process has none of them, because it must claim them for itself.
"""
os.register_at_fork(after_in_child=_owners.clear)


@contextmanager
def only_machine(root: Path, tell: Tell | None = None) -> Iterator[None]:
    """Write as a process of the only machine that writes this warehouse; its other processes may
    write too.

    Raises:
        WarehouseBusy: another machine writes; see `Owner.begin` for `tell`.
    """
    path = root.resolve()
    with _lock:
        owner = _owners.get(path)
        if owner is None:
            owner = Owner(root)
            with explaining(f"{root}: cannot be written"):
                owner.begin(tell)
            _owners[path] = owner
        owner.n_users += 1
    try:
        yield
    finally:
        with _lock:
            owner.n_users -= 1
            # A process that was forked within the block has no owners.
            if owner.n_users == 0 and path in _owners:
                _owners.pop(path).end()


def refuse_if_lost() -> None:
    """Refuse to write if another machine took over.

    Raises:
        WarehouseBusy: one has.
    """
    reason = why_lost()
    if reason:
        raise WarehouseBusy(reason)


def why_lost() -> str | None:
    """Return the reason why this process may not write, in one line; None if it may."""
    for owner in list(_owners.values()):
        reason = owner.renew()
        if reason:
            return reason
    return None
