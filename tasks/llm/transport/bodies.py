"""Bodies of answers as they come in: decompressed within a bound, and without figures that LiteLLM fails at.

Nothing here reads from a connection: a `Body` takes pieces and gives pieces.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.llm.transport.cleaning import cleaned

_PIECE_BYTES = 1 << 16
_TELLS_FIGURES = re.compile(rb'"usage"\s*:\s*[^n\s]|"finish_reason"\s*:\s*[^n\s]')
"""An event of a stream that has a usage or a reason for the end; in all others these are null."""
_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_MOST_LINES = 500_000
"""Of a stream, two or three an event. LiteLLM keeps some 4 KB for each event."""


class TooLarge(Exception):
    """The reply is larger than what is read of one."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"the reply is larger than {most_bytes >> 20} MiB or has too many pieces; it was not read on")


class Body:
    """A body that is counted, and handed on piece by piece. What it said about its end is kept.

    `is_over` is whether the rest need not be read. `is_completion` is whether it has the shape of OpenAI's chat
    completions, whose `finish_reason` is kept as it was sent: LiteLLM makes `stop` of one that is missing or that it
    does not know.
    """

    def __init__(self, most_bytes: int, encoding: str = "") -> None:
        self._most_bytes, self._n_bytes = most_bytes, 0
        if encoding not in {"", "identity", "gzip"}:
            raise ValueError(f"the reply is compressed as {encoding[:20]!r}, which was not requested")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding == "gzip" else None
        self.is_over = False
        self.is_completion = False
        self.finish_reason: str | None = None

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """What a piece from the connection becomes.

        Raises:
            TooLarge: there is more than is read.
        """
        for piece in self._inflated(raw):
            self._n_bytes += len(piece)
            if self._n_bytes > self._most_bytes:
                yield from self._beyond()
                return
            yield from self._handed_on(piece)

    def end(self) -> Iterator[bytes]:
        """What is left when the connection has given all."""
        yield from ()

    def _handed_on(self, piece: bytes) -> Iterator[bytes]:
        yield piece

    def _beyond(self) -> Iterator[bytes]:
        raise TooLarge(self._most_bytes)

    def _inflated(self, raw: bytes) -> Iterator[bytes]:
        """Decompressed in small pieces, since a few bytes may become gigabytes."""
        if self._inflater is None:
            yield raw
            return
        while True:
            piece = self._inflater.decompress(raw, _PIECE_BYTES)
            if piece:
                yield piece
            raw = self._inflater.unconsumed_tail
            if not raw and len(piece) < _PIECE_BYTES:
                return

    def look_at(self, content: Any) -> None:
        """Keep what a completion, or a part of one, says about its end."""
        choices = content.get("choices") if isinstance(content, dict) else None
        if isinstance(choices, list):
            self.is_completion = True
            if choices and isinstance(choices[0], dict) and choices[0].get("finish_reason") is not None:
                self.finish_reason = choices[0]["finish_reason"]


class WholeBody(Body):
    """A body that is one JSON value."""

    def __init__(self, most_bytes: int, encoding: str = "") -> None:
        super().__init__(most_bytes, encoding)
        self._pieces: list[bytes] = []

    def _handed_on(self, piece: bytes) -> Iterator[bytes]:
        self._pieces.append(piece)
        yield from ()

    def end(self) -> Iterator[bytes]:
        """The body, cleaned if it has to be."""
        body = b"".join(self._pieces)
        self._pieces.clear()
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            yield body
            return
        clean = cleaned(content)
        self.look_at(clean)
        yield body if clean is content else json.dumps(clean).encode()


class EventBody(Body):
    """A stream of events."""

    def __init__(self, most_bytes: int, encoding: str = "") -> None:
        super().__init__(most_bytes, encoding)
        self._line = bytearray()
        self._n_lines = 0

    def _handed_on(self, piece: bytes) -> Iterator[bytes]:
        *ended, rest = piece.split(b"\n")
        self._n_lines += len(ended)
        if self._n_lines > _MOST_LINES:
            raise TooLarge(self._most_bytes)
        for line in ended:
            yield self._cleaned(bytes(self._line) + line) + b"\n"
            self._line.clear()
        self._line += rest

    def end(self) -> Iterator[bytes]:
        """A last line without an end."""
        yield self._cleaned(bytes(self._line))

    def _cleaned(self, line: bytes) -> bytes:
        if b'"choices"' in line:
            self.is_completion = True
        if not line.startswith(b"data:") or not _TELLS_FIGURES.search(line):
            return line
        try:
            content = json.loads(line[5:])
        except (ValueError, RecursionError):
            return line
        clean = cleaned(content)
        self.look_at(clean)
        return line if clean is content else b"data: " + json.dumps(clean).encode()


class LineBody(Body):
    """A file of JSON lines, the results of a batch. Of a line that is too long the beginning is kept, with its id.

    A file that is too long as a whole ends where the bound is, so that no paid result before it is lost.
    """

    def __init__(self, most_bytes: int, encoding: str = "", *, most_line_bytes: int) -> None:
        super().__init__(most_bytes, encoding)
        self._most_line_bytes, self._n_line_bytes = most_line_bytes, 0

    def _handed_on(self, piece: bytes) -> Iterator[bytes]:
        for line in _LINES.findall(piece):
            left = max(0, self._most_line_bytes - self._n_line_bytes)
            is_ended = line.endswith(b"\n")
            yield line if len(line) <= left else line[:left] + b"\n" * is_ended
            self._n_line_bytes = 0 if is_ended else self._n_line_bytes + len(line)

    def _beyond(self) -> Iterator[bytes]:
        self.is_over = True
        yield from ()


def whole(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], Body]:
    """A completion that came in another way, cleaned, and the body that it would have been."""
    clean, body = cleaned(dict(content)), Body(0)
    body.look_at(clean)
    return clean, body
