"""What this program writes to people: text in which nothing is a command to their terminal, whoever wrote it."""

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TextIO

from tasks.console.log_records import rewrite_log_records
from tasks.rules.text.characters import visible


class Shown(io.TextIOBase):
    """A standard stream on which everything is made visible; `exact` is the stream below, for what machines read.

    It has no `buffer`, through which others would write past it.
    """

    def __init__(self, exact: TextIO) -> None:
        self.exact = exact

    def write(self, text: str, /) -> int:
        """Write text as people may see it."""
        self.exact.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        if not self.closed and not self.exact.closed:
            self.exact.flush()

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.exact.isatty()

    def fileno(self) -> int:
        """The number of the file below."""
        return self.exact.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream below."""
        return getattr(self.exact, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What the stream below does with characters that its encoding lacks."""
        return getattr(self.exact, "errors", None) or "replace"


@contextlib.contextmanager
def shown_visibly() -> Iterator[None]:
    """Let everything that is printed on the standard streams meanwhile be made visible."""
    before = sys.stdout, sys.stderr
    show_visibly()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def show_visibly() -> None:
    """Let everything that is printed on the standard streams from now on be made visible."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Shown):
            setattr(sys, name, Shown(stream))


def exact(stream: TextIO) -> TextIO:
    """The stream itself: for what machines read, and for what draws on the terminal and makes its texts visible."""
    return stream.exact if isinstance(stream, Shown) else stream


def guard_log_records() -> None:
    """Make every log record of this process visible, also where other programs will show it."""
    rewrite_log_records("is_visible", visible)
