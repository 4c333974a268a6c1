"""Text for terminals and logs.

`printing` is separate, because `--help` should not wait for the import of Rich.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from tasks.rules.text.characters import visible
from tasks.rules.text.numbers import duration

if TYPE_CHECKING:
    from tasks.console.printing import Bars


def rewrite_log_records(mark: str, rewritten: Callable[[str], str]) -> None:
    """Rewrite messages and tracebacks of all later log records, by `rewritten`.

    A second call with the same `mark`, an attribute of the factory of records, does nothing.
    """
    make_record = logging.getLogRecordFactory()
    if getattr(make_record, mark, False):
        return

    def make_rewritten(*arguments: Any, **keywords: Any) -> logging.LogRecord:
        record = make_record(*arguments, **keywords)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            return record  # a message that does not fit its arguments; logging reports that itself
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        texts = [rewritten(message), rewritten(trace)]
        if texts != [message, trace]:
            record.msg = "\n".join(filter(None, texts))
            record.args = ()
            record.exc_info = None
        return record

    vars(make_rewritten).update({**vars(make_record), mark: True})  # keeps earlier marks
    logging.setLogRecordFactory(make_rewritten)


class VisibleStream:
    """A standard stream that makes control characters visible; `exact` is the original stream, for
    machines.

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
        """Write lines with visible control characters."""
        self.exact.writelines(map(visible, lines))

    def flush(self) -> None:
        """Flush the original stream, unless it is closed."""
        if not self.exact.closed:
            self.exact.flush()


@contextmanager
def shown_visibly() -> Iterator[None]:
    """Make control characters on the standard streams visible, until the block ends."""
    output = sys.stdout
    errors = sys.stderr
    sys.stdout = _visible(output)
    sys.stderr = _visible(errors)
    try:
        yield
    finally:
        sys.stdout = output
        sys.stderr = errors


def _visible(stream: TextIO | None) -> Any:
    """Return a stream that makes control characters visible; None stays, for a missing stream."""
    if stream is None or isinstance(stream, VisibleStream):
        return stream
    return VisibleStream(stream)


def exact(stream: TextIO) -> TextIO:
    """Return the stream that writes texts unchanged.

    It is for output for machines, and for libraries that draw on the terminal and make their texts
    visible themselves.
    """
    return stream.exact if isinstance(stream, VisibleStream) else stream


@dataclass
class Tally:
    """The progress of a stage on one model, or of a step of unknown length, which has no total.

    `name` is that of the stage and the model, or of the step. The times, by the monotonic clock,
    are those of the beginning, of the first finished unit, and of the last printed line.
    """

    name: str
    total: int | None
    is_quiet: bool = False
    done: int = 0
    failed: int = 0
    begun_s: float = 0.0
    first_s: float = 0.0
    printed_s: float = 0.0

    def __post_init__(self) -> None:
        self.begun_s = time.monotonic()
        self.printed_s = self.begun_s


_tallies: dict[tuple[str, str], Tally] = {}
"""(stage, label of the model) -> the tally that `advance` counts in."""
_open_tallies: list[Tally] = []
"""All tallies that are shown, the innermost last."""
_bars: list["Bars"] = []
"""The only bars, shared by all work: a terminal has room for one set."""
_while_drawing = ExitStack()
"""What is open as long as the bars are drawn; closed with them."""
_drawing_lock = threading.RLock()
_SILENCE_S = 15.0
"""Without a terminal, the work in progress is named after so many seconds without a line."""
_MOST_SILENCE_S = 300.0
"""The silence grows to a tenth of the elapsed time, but no further than this."""


def _show(tally: Tally) -> None:
    """Show a tally: a bar on a terminal; elsewhere a line from time to time, and one at the end."""
    if tally.is_quiet:
        return
    with _drawing_lock:
        if not _bars and sys.stderr.isatty():
            _draw(tally)
        failures = f"{tally.failed} failed" if tally.failed else ""
        if _bars:
            _bars[0].show(tally, failures)
        elif tally.total is not None:
            _print_if_due(tally, tally.total, failures)


def _draw(tally: Tally) -> None:
    """Open the bars; the name of the work is shown while Rich is imported."""
    terminal = exact(sys.stderr)
    terminal.write(f"{visible(tally.name)}\r")
    terminal.flush()
    from tasks.console.printing import Bars

    terminal.write("\x1b[2K")
    _bars.append(_while_drawing.enter_context(Bars()))
    # Other output passes through Rich, which would obey control characters.
    _while_drawing.enter_context(shown_visibly())


def _print_if_due(tally: Tally, total: int, failures: str) -> None:
    """Print the counts and an estimate of the time left: at the end, and before that less and less
    often.
    """
    now_s = time.monotonic()
    is_done = tally.done >= total
    silence_s = min(_MOST_SILENCE_S, max(_SILENCE_S, (now_s - tally.begun_s) / 10))
    if not is_done and now_s - tally.printed_s < silence_s:
        return
    tally.printed_s = now_s
    estimate = ""
    # The first unit also waited for everything to start, so it says nothing about the others.
    if tally.done > 1 and not is_done:
        unit_s = (now_s - tally.first_s) / (tally.done - 1)
        estimate = f"about {duration(unit_s * (total - tally.done))} left"
    notice(", ".join(filter(None, (f"{tally.name}: {tally.done} of {total}", failures, estimate))))


def advance(stage: str, label: str = "", *, succeeded: bool) -> None:
    """Count one more finished unit of a stage's work on a model; without a tally for it, do
    nothing.
    """
    tally = _tallies.get((stage, label))
    if tally is not None:
        tally.done += 1
        if tally.done == 1:
            tally.first_s = time.monotonic()
        tally.failed += not succeeded
        _show(tally)


@contextmanager
def progress(
    stage: str,
    totals: Mapping[str, int],
    *,
    is_quiet: bool = False,
) -> Iterator[list[Tally]]:
    """Count and show the units that `advance` reports for a stage, until the block ends; `totals`
    are by model.
    """
    tallies = {}
    for label, total in totals.items():
        if total:
            tallies[stage, label] = Tally(f"{stage} {label}".rstrip(), total, is_quiet)
    _tallies.update(tallies)
    with _showing(tallies.values()):
        try:
            yield list(tallies.values())
        finally:
            for key in tallies:
                del _tallies[key]


@contextmanager
def working(name: str, *, is_quiet: bool = False, is_command: bool = False) -> Iterator[None]:
    """Show a step of unknown length until the block ends.

    On a terminal it is a row with the elapsed time. Elsewhere only a step that `is_command` (a
    command, with all other steps in it) has a line at once; from then on, a line names the
    innermost work from time to time.
    """
    step = Tally(name, None, is_quiet)
    ended = threading.Event()
    with _showing([step]):
        if is_command and not is_quiet and not _bars:
            notice(f"{name}: started")
            threading.Thread(target=_break_silence, args=(step, ended), daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def _break_silence(command: Tally, ended: threading.Event) -> None:
    while not ended.wait(_SILENCE_S):
        innermost = _open_tallies[-1]
        if innermost.total is None:
            elapsed = duration(time.monotonic() - command.begun_s)
            names = dict.fromkeys((command.name, innermost.name))
            notice(f"{': '.join(names)}, {elapsed} so far")
        else:
            _show(innermost)


@contextmanager
def _showing(tallies: Iterable[Tally]) -> Iterator[None]:
    """Show tallies until the block ends; the bars of finished ones stay on the terminal, without
    those of steps.
    """
    loud_tallies = [tally for tally in tallies if not tally.is_quiet]
    with _drawing_lock:
        _open_tallies.extend(loud_tallies)
    for tally in loud_tallies:
        _show(tally)
    try:
        yield
    finally:
        with _drawing_lock:
            for tally in loud_tallies:
                _open_tallies.remove(tally)
            if _bars and all(tally.total is None for tally in _open_tallies):
                _bars.pop().keep_counted()
                _while_drawing.close()
                for step in _open_tallies:
                    _show(step)


def notice(line: str) -> None:
    """Print a line for people on standard error; a closed stream is ignored."""
    with suppress(BrokenPipeError):
        print(visible(line), file=sys.stderr, flush=True)
