"""Only one machine writes a warehouse: this process keeps its machine's heartbeat there while it needs to."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.files.errors import WarehouseBusy
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
    place = root.resolve()
    with _lock:
        if place not in _kept:
            heartbeat = Heartbeat(root)
            heartbeat.begin(tell)
            _kept[place] = heartbeat
            _needed[place] = 0
        _needed[place] += 1
    try:
        yield
    finally:
        with _lock:
            _needed[place] -= 1
            if _needed[place] == 0 and place in _kept:
                _kept.pop(place).end()


def why_lost(path: Path) -> str | None:
    """Why nothing more may be written below this path, in one line: another machine took over; None where it may."""
    place = path.resolve()
    here = [heartbeat for root, heartbeat in list(_kept.items()) if place.is_relative_to(root)]
    return next((why for heartbeat in here if (why := heartbeat.why_lost()) is not None), None)


def refuse_if_lost(path: Path) -> None:
    """Write nothing more below this path where another machine took over.

    Raises:
        WarehouseBusy: one has.
    """
    if (why := why_lost(path)) is not None:
        raise WarehouseBusy(why)
