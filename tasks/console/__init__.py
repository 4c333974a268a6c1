"""Text for terminals and logs. `printing` is separate, because `--help` should not wait for the import of Rich."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from tasks.rules.text.characters import visible

if TYPE_CHECKING:
    from tasks.console.printing import Bars


def rewrite_log_records(mark: str, rewritten: Callable[[str], str]) -> None:
    """Rewrite messages and tracebacks of all later log records, once for each `mark`."""
    make = logging.getLogRecordFactory()
    if getattr(make, mark, False):
        return

    def guarded(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            return record  # a message that does not fit its arguments; logging reports that itself
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        kept = rewritten(message), rewritten(trace)
        if kept != (message, trace):
            record.msg, record.args, record.exc_info = "\n".join(filter(None, kept)), (), None
        return record

    vars(guarded).update({**vars(make), mark: True})  # keeps earlier marks
    logging.setLogRecordFactory(guarded)


class Shown:
    """A standard stream that makes control characters visible; `exact` is the original stream, for machines.

    It has no `buffer`, because writes to that would bypass it.
    """

    def __init__(self, exact: TextIO) -> None:
        self.exact = exact

    def __getattr__(self, name: str) -> Any:
        if name in {"buffer", "exact"}:
            raise AttributeError(name)
        return getattr(self.exact, name)

    def write(self, text: str, /) -> int:
        """Write text with visible control characters."""
        self.exact.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write lines likewise."""
        self.exact.writelines(map(visible, lines))

    def flush(self) -> None:
        """Flush the original stream, unless it is closed."""
        if not self.exact.closed:
            self.exact.flush()


@contextmanager
def shown_visibly() -> Iterator[None]:
    """Make control characters on the standard streams visible, until the block ends."""
    before = sys.stdout, sys.stderr
    shown: Any = (each if each is None or isinstance(each, Shown) else Shown(each) for each in before)
    sys.stdout, sys.stderr = shown
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def exact(stream: TextIO) -> TextIO:
    """Return the stream that writes texts unchanged.

    It is for output for machines, and for libraries that draw on the terminal and make their texts visible themselves.
    """
    return stream.exact if isinstance(stream, Shown) else stream


@dataclass
class Tally:
    """The progress of a stage on one model; the name has both."""

    name: str
    total: int
    is_quiet: bool = False
    done: int = 0
    failed: int = 0
    printed_at_s: float = field(default_factory=time.monotonic)


_tallies: dict[tuple[str, str], Tally] = {}
_bars: list["Bars"] = []
"""The only bars, shared by all work: a terminal has room for one set."""
_until_done = ExitStack()


def _show(tally: Tally) -> None:
    """Show a tally: a bar on a terminal; elsewhere a line from time to time, and one at the end."""
    if tally.is_quiet:
        return
    if not _bars and sys.stderr.isatty():
        from tasks.console.printing import Bars

        _bars.append(_until_done.enter_context(Bars()))
        # Other output passes through Rich, which would obey control characters.
        _until_done.enter_context(shown_visibly())
    failures = f"{tally.failed} failed" if tally.failed else ""
    if _bars:
        _bars[0].show(tally, failures)
    elif tally.done >= tally.total or time.monotonic() - tally.printed_at_s > 20:
        tally.printed_at_s = time.monotonic()
        notice(", ".join(filter(None, (f"{tally.name}: {tally.done} of {tally.total}", failures))))


def advance(what: str, label: str = "", *, succeeded: bool) -> None:
    """Count one more finished unit of a stage's work on a model; without a tally for it, do nothing."""
    tally = _tallies.get((what, label))
    if tally is not None:
        tally.done += 1
        tally.failed += not succeeded
        _show(tally)


@contextmanager
def progress(what: str, totals: Mapping[str, int], *, is_quiet: bool = False) -> Iterator[list[Tally]]:
    """Count and show the units that `advance` reports for a stage, until the block ends; `totals` are by model."""
    tallies = {
        (what, label): Tally(f"{what} {label}".rstrip(), total, is_quiet) for label, total in totals.items() if total
    }
    _tallies.update(tallies)
    for tally in tallies.values():
        _show(tally)
    try:
        yield list(tallies.values())
    finally:
        for key in tallies:
            del _tallies[key]
        if all(tally.is_quiet for tally in _tallies.values()):
            _bars.clear()
            _until_done.close()


def notice(line: str) -> None:
    """Print a line for people on standard error; a closed stream is ignored."""
    with suppress(BrokenPipeError):
        print(visible(line), file=sys.stderr, flush=True)
