"""SQLite's file format, page by page: for files that SQLite itself refuses or reads only in part.

See https://www.sqlite.org/fileformat2.html. A page is looked at for itself, so one that is damaged hides no other.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

PAGE_BYTES = 4096
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
_INDEX_INSIDE, _INDEX_LEAF, _TABLE_LEAF = 2, 10, 13
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_LITTLE = 0x377F0682
Buffer = Any
"""Bytes or a mapped file."""


class NoRecord(Exception):
    """There is no record here that makes sense."""


@dataclass(frozen=True)
class Frame:
    """A page in the log: its number, and whether it is as it was written."""

    page: int
    data: bytes
    is_whole: bool


@dataclass(frozen=True)
class Record:
    """A row of a table or of an index: its place in the table (None in an index), its values, and what vouches for it.

    `is_of_whole_page` is False for what stands in a page of the log that is known to be damaged.
    """

    rowid: int | None
    values: tuple[Any, ...]
    is_of_whole_page: bool = True


def frames_of(log: Buffer) -> list[Frame]:
    """The frames of a log since it was last started over, damaged ones among them; none after the last whole commit.

    Each frame is checked by the checksum of the one before it as it is stored, so a damaged one says nothing of others.
    """
    if len(log) < _LOG_HEADER + _FRAME_HEADER:
        return []
    order = ">" if struct.unpack_from(">I", log)[0] == _LITTLE + 1 else "<"
    before = _checksum(log[:24], order, (0, 0))
    is_header_whole = before == struct.unpack_from(">II", log, 24)
    salts = log[16:24] if is_header_whole else log[_LOG_HEADER + 8 : _LOG_HEADER + 16]
    frames: list[Frame] = []
    n_kept = 0
    for place in range(_LOG_HEADER, len(log) - _FRAME_HEADER - PAGE_BYTES + 1, _FRAME_HEADER + PAGE_BYTES):
        page, size_after = struct.unpack_from(">II", log, place)
        data = bytes(log[place + _FRAME_HEADER : place + _FRAME_HEADER + PAGE_BYTES])
        found = struct.unpack_from(">II", log, place + 16)
        is_current = log[place + 8 : place + 16] == salts
        is_whole = is_current and found == _checksum(data, order, _checksum(log[place : place + 8], order, before))
        frames.append(Frame(page, data, is_whole))
        before = found
        if is_whole and size_after:
            n_kept = len(frames)
    return frames[:n_kept]


def is_log_damaged(log: Buffer) -> bool:
    """Whether commits in a log are out of SQLite's reach, since something before them is damaged."""
    frames = frames_of(log)
    is_header_whole = len(log) >= _LOG_HEADER and _is_log_header_whole(log)
    return bool(frames) and not (is_header_whole and all(frame.is_whole for frame in frames))


def _is_log_header_whole(log: Buffer) -> bool:
    magic, version, page_bytes = struct.unpack_from(">III", log)
    order = ">" if magic == _LITTLE + 1 else "<"
    is_known = magic in {_LITTLE, _LITTLE + 1} and version == 3_007_000 and page_bytes == PAGE_BYTES
    return is_known and _checksum(log[:24], order, (0, 0)) == struct.unpack_from(">II", log, 24)


def _checksum(data: Buffer, order: str, before: tuple[int, int]) -> tuple[int, int]:
    first, second = before
    for one, other in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


class RawFile:
    """The pages of a database file and of its log."""

    def __init__(self, data: Buffer, frames: Sequence[Frame]) -> None:
        self._data = data
        self._logged: dict[int, list[Frame]] = defaultdict(list)
        for frame in frames:
            self._logged[frame.page].append(frame)

    def records(self) -> Iterator[Record]:
        """All rows of tables and indexes that can be read, some perhaps in an older version too."""
        for number in range(1, len(self._data) // PAGE_BYTES + 2):
            if page := self._stored(number):
                yield from self._records_of(page, _FILE_HEADER if number == 1 else 0, is_whole=True)
        for number, frames in sorted(self._logged.items()):
            for frame in frames:
                yield from self._records_of(frame.data, _FILE_HEADER if number == 1 else 0, is_whole=frame.is_whole)

    def _stored(self, number: int) -> bytes:
        """A page of the file itself; of one that was cut, what is there of it."""
        return bytes(self._data[(number - 1) * PAGE_BYTES : number * PAGE_BYTES])

    def _newest(self, number: int) -> bytes:
        logged = self._logged.get(number)
        return logged[-1].data if logged else self._stored(number)

    def _records_of(self, page: bytes, start: int, *, is_whole: bool) -> Iterator[Record]:
        if len(page) < start + 12 or page[start] not in {_INDEX_INSIDE, _INDEX_LEAF, _TABLE_LEAF}:
            return
        is_table = page[start] == _TABLE_LEAF
        child = 4 if page[start] == _INDEX_INSIDE else 0
        n_cells = struct.unpack_from(">H", page, start + 3)[0]
        pointers = struct.iter_unpack(">H", page[start + 8 + child : start + 8 + child + 2 * n_cells])
        for (pointer,) in islice(pointers, (len(page) - start) // 2):
            try:
                size, place = _varint(page, pointer + child)
                rowid, place = _varint(page, place) if is_table else (None, place)
                yield Record(rowid, _values(self._payload(page, place, size, is_table=is_table)), is_whole)
            except NoRecord:
                continue

    def _payload(self, page: bytes, place: int, size: int, *, is_table: bool) -> bytes:
        """The bytes of a record, those on overflow pages included."""
        usable = PAGE_BYTES
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return _cut(page, place, size)
        least = (usable - 12) * 32 // 255 - 23
        kept = least + (size - least) % (usable - 4)
        local = kept if kept <= most else least
        parts = [_cut(page, place, local)]
        (following,) = struct.unpack(">I", _cut(page, place + local, 4))
        left = size - local
        passed: set[int] = set()
        while left > 0:
            if following == 0 or following in passed:
                raise NoRecord
            passed.add(following)
            overflow = self._newest(following)
            parts.append(_cut(overflow, 4, min(left, usable - 4)))
            left -= usable - 4
            (following,) = struct.unpack_from(">I", overflow)
        if following != 0:
            raise NoRecord
        return b"".join(parts)


def _cut(data: bytes, place: int, size: int) -> bytes:
    cut = data[place : place + size]
    if len(cut) < size:
        raise NoRecord
    return cut


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(data[place : place + 9]):
        if number == 8:
            return (value << 8 | byte), place + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + number + 1
    raise NoRecord


def _values(payload: bytes) -> tuple[Any, ...]:
    size, place = _varint(payload, 0)
    kinds = []
    while place < size:
        kind, place = _varint(payload, place)
        kinds.append(kind)
    if place != size:
        raise NoRecord
    values = []
    for kind in kinds:
        value, place = _value(payload, place, kind)
        values.append(value)
    if place != len(payload):
        raise NoRecord
    return tuple(values)


def _value(payload: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in {0, 8, 9}:
        return (None if kind == 0 else kind - 8), place
    size = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2)
    data = _cut(payload, place, size) if size >= 0 else b""
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True), place + size
    if kind == 7:
        return struct.unpack(">d", data)[0], place + size
    if kind < 12:
        raise NoRecord
    if kind % 2 == 0:
        return data, place + size
    try:
        return data.decode(), place + size
    except UnicodeDecodeError:
        raise NoRecord from None
