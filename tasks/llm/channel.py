"""Messages between the processes of one run: pickled, with their length in front, over a socket of their own."""

import asyncio
import pickle
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

_LENGTH = struct.Struct(">I")
_BUFFER_BYTES = 1 << 20


class Channel:
    """One end of the line between two processes; both belong to one user and were started by one program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._is_finished = False

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """The channel over one end of a socket pair."""
        end.setblocking(False)
        return cls(*await asyncio.open_connection(sock=end, limit=_BUFFER_BYTES))

    def send(self, *message: Any) -> None:
        """Send a message; it goes out in order, and is lost when this side has finished or the other has ended."""
        if self._is_finished or self._writer.is_closing():
            return
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._writer.write(_LENGTH.pack(len(body)) + body)

    async def messages(self) -> AsyncIterator[tuple[Any, ...]]:
        """The messages that come in, until the other side closes or ends."""
        try:
            while True:
                (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                yield pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    def finish(self) -> None:
        """Tell the other side that nothing more will come."""
        self._is_finished = True
        if not self._writer.is_closing():
            self._writer.write_eof()

    def close(self) -> None:
        """Close the line."""
        self._writer.close()
