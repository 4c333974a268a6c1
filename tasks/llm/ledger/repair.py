"""Saving what can be read from a ledger file that is damaged, whatever the damage: row by row, page by page."""

import contextlib
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.llm.ledger.entries import COLUMNS, is_as_written
from tasks.llm.ledger.raw_pages import RawFile, Record, frames_of
from tasks.llm.ledger.spend import SPEND_COLUMNS, SPEND_KEY

Row = tuple[Any, ...]
_TEXT, _NUMBER, _MAYBE = str, (int, float), (str, type(None))
_MAYBE_NUMBER = (int, float, type(None))
_CALL = (
    _TEXT, int, _TEXT, _TEXT, _NUMBER, _TEXT, _TEXT, _TEXT, _TEXT, int,
    *(_MAYBE,) * 4, *(_MAYBE_NUMBER,) * 6, _MAYBE, *(_MAYBE_NUMBER,) * 3, _MAYBE,
)  # fmt: skip
"""What the columns of a call are, in the order of `COLUMNS`."""
_SHAPES: dict[str, Sequence[Any]] = {
    "spent": (_TEXT, int),
    "spend": (_TEXT,) * len(SPEND_KEY) + (_NUMBER,) * (len(SPEND_COLUMNS) - len(SPEND_KEY)),
    "submissions": (_TEXT, _TEXT),
    "submitted_calls": (_TEXT,) * 4,
    "submission_states": (_TEXT, _TEXT, _MAYBE, _NUMBER),
}
"""What the columns of the other tables are. No two tables look the same."""
_CALL_INDEX = (_TEXT, int, int)


@dataclass
class Saved:
    """What was saved: rows by table, and of the calls that were seen those that could not be saved.

    `calls` is a function since they may be more than fit into memory.
    """

    calls: Callable[[], Iterator[Row]] = lambda: iter(())
    others: dict[str, list[Row]] = field(default_factory=dict)
    n_calls: int = 0
    n_lost: int = 0


NOTHING = Saved()


@contextlib.contextmanager
def salvaged(path: Path) -> Iterator[Saved]:
    """All rows of a damaged file that are whole, while the block lasts; a file that is not there has those of its log.

    A row is whole if its checksum says so; one from before there were checksums, if it makes sense.

    Raises:
        OSError: the disk refuses.
    """
    log = path.with_name(f"{path.name}-wal")
    frames = frames_of(log.read_bytes()) if log.exists() else []
    if not path.exists() or path.stat().st_size == 0:
        yield _saved(RawFile(b"", frames))
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield _saved(RawFile(data, frames))


def _saved(raw: RawFile) -> Saved:
    best: dict[tuple[str, int], tuple[tuple[bool, int], int]] = {}
    seen: set[int] = set()
    others: dict[str, dict[Any, Row]] = {name: {} for name in _SHAPES}
    for number, record in enumerate(raw.records()):
        values = record.values
        rowid = values[-1] if record.rowid is None and _looks_like(values, _CALL_INDEX) else record.rowid
        if rowid is None:
            continue
        if record.rowid is not None and len(values) < len(COLUMNS):
            _keep(others, record)
            continue
        seen.add(rowid)
        if record.rowid is not None and _is_whole_call(record):
            # One that its checksum vouches for stands before one without; else the later one, as in the log.
            rank, key = (len(values) > len(COLUMNS), number), (values[0], values[1])
            best[key] = max(best.get(key, (rank, rowid)), (rank, rowid))
    chosen = {number for (_, number), _ in best.values()}
    lost = seen - {rowid for _, rowid in best.values()}

    def calls() -> Iterator[Row]:
        for number, record in enumerate(raw.records()):
            if number in chosen:
                yield record.values[: len(COLUMNS)]

    return Saved(calls, {name: _in_order(rows) for name, rows in others.items()}, len(chosen), len(lost))


def _in_order(rows: dict[Any, Row]) -> list[Row]:
    return [rows[key] for key in sorted(rows)]


def _is_whole_call(record: Record) -> bool:
    values = record.values
    if len(values) == len(COLUMNS) + 1 and values[-1] is not None:
        return is_as_written(values[: len(COLUMNS)], values[-1])
    if len(values) > len(COLUMNS) + 1:
        return False
    return record.is_of_whole_page and _looks_like(values[: len(COLUMNS)], _CALL)


def _keep(others: dict[str, dict[Any, Row]], record: Record) -> None:
    """Keep a row of one of the small tables; of sums that only grow the larger, of others the later one."""
    for name, shape in _SHAPES.items():
        if not (record.is_of_whole_page and _looks_like(record.values, shape)):
            continue
        row, rows = record.values, others[name]
        if name == "spend":
            key, size = row[: len(SPEND_KEY)], len(SPEND_KEY)
            rows[key] = max(rows.get(key, row), row, key=lambda each: each[size])
        elif name == "spent":
            rows[row[0]] = max(rows.get(row[0], row), row, key=lambda each: each[1])
        else:
            rows[record.rowid] = row


def _looks_like(values: Row, shape: Sequence[Any]) -> bool:
    return len(values) == len(shape) and all(isinstance(*each) for each in zip(values, shape, strict=True))
