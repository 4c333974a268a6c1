"""Telling people how far long work has come: a bar on a terminal, a line now and then elsewhere, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LINE_EVERY_S = 20.0


class _Shown:
    """The progress of one stage as it is shown; says nothing when there is nothing to show."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done, self.failed = what, total, 0, 0
        self._said_at_s = time.monotonic()

    def add(self, *, succeeded: bool) -> None:
        self.done += 1
        self.failed += not succeeded
        self.show()

    def show(self) -> None:
        if self.done >= self.total or time.monotonic() - self._said_at_s > _LINE_EVERY_S:
            self._said_at_s = time.monotonic()
            say(f"{self.what}: {self.done} of {self.total}" + (f", {self.failed} failed" if self.failed else ""))


class _Bar(_Shown):
    def __init__(self, what: str, total: int, bars: Any) -> None:
        super().__init__(what, total)
        self._bars = bars
        self._bar = bars.add_task(what, total=total, failures="")

    def show(self) -> None:
        self._bars.update(self._bar, completed=self.done, failures=f"{self.failed} failed" if self.failed else "")


_shown: dict[str, _Shown] = {}
_forward: list[Callable[[str, bool], None]] = []


def forward_to(listener: Callable[[str, bool], None]) -> None:
    """Tell progress to somebody else from now on, such as another process that shows it."""
    _forward[:] = [listener]


def advance(what: str, *, succeeded: bool) -> None:
    """Tell that one more unit of a piece of work has finished; without anyone who shows it, nothing happens."""
    for listener in _forward:
        listener(what, succeeded)
    if what in _shown:
        _shown[what].add(succeeded=succeeded)


@contextmanager
def progress(what: str, total: int, *, is_quiet: bool = False) -> Iterator[None]:
    """Show what `advance` tells about a piece of work while the block runs."""
    if is_quiet or total == 0:
        yield
    elif sys.stderr.isatty():
        with _bars() as bars:
            _shown[what] = _Bar(what, total, bars)
            yield
    else:
        _shown[what] = _Shown(what, total)
        yield
    _shown.pop(what, None)


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.fields[failures]}"), console=Console(stderr=True))


def say(line: str) -> None:
    """A line for people, on standard error."""
    print(line, file=sys.stderr, flush=True)
