"""Only one machine writes a warehouse: this process keeps its machine's heartbeat there while it needs to."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from warehouse.files.errors import WarehouseBusy, WarehouseError, cause_of, refusal_of_disk
from warehouse.files.heartbeat import Heartbeat, Tell

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
