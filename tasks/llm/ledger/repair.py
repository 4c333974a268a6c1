"""Repairing a damaged ledger file: what can be read, whatever the damage, becomes a new file, row by row."""

import contextlib
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.console import notice
from tasks.llm.ledger.deletions import mark_in, set_mark
from tasks.llm.ledger.entries import COLUMNS, is_as_written
from tasks.llm.ledger.paths import FILE_PARTS, beside, repaired
from tasks.llm.ledger.raw_pages import RawFile, Record, frames_of
from tasks.llm.ledger.schema import INSERT, new_file, sync, with_checksum
from tasks.llm.ledger.spend import FILL_SPEND, SPEND_COLUMNS, SPEND_KEY

Row = tuple[Any, ...]
_TEXT, _NUMBER, _MAYBE = str, (int, float), (str, type(None))
_SHAPES: dict[str, Sequence[Any]] = {
    "spent": (_TEXT, int),
    "spend": (_TEXT,) * len(SPEND_KEY) + (_NUMBER,) * (len(SPEND_COLUMNS) - len(SPEND_KEY)),
    "logprobs": (_TEXT, int, _TEXT),
    "submissions": (_TEXT, _TEXT),
    "submitted_calls": (_TEXT,) * 4,
    "submission_states": (_TEXT, _TEXT, _MAYBE, _NUMBER),
}
"""What the columns of the other tables are. No two tables look the same."""
_CALL_INDEX = (_TEXT, int, int)


@dataclass
class _Recovered:
    """What was recovered: rows by table, and how many of the calls that were seen could not be.

    `calls` is a function since they may be more than fit into memory.
    """

    calls: Callable[[], Iterator[Row]] = lambda: iter(())
    others: dict[str, list[Row]] = field(default_factory=dict)
    n_calls: int = 0
    n_lost: int = 0


def repair(path: Path, damage: str) -> None:
    """Set a damaged file aside and put in its place one with all that can be recovered; a kill loses nothing.

    The new file is whole before the old one is touched, and has a name by which the next opening goes on with this.

    Raises:
        OSError: the disk refuses.
    """
    with _recovered_from(path) as recovered, new_file(path, as_=repaired(path)) as connection:
        connection.execute("begin")
        with connection:
            connection.executemany(INSERT, map(with_checksum, recovered.calls()))
            for name, rows in recovered.others.items():
                for row in rows:
                    connection.execute(f"insert or replace into {name} values ({', '.join('?' * len(row))})", row)
            if not recovered.others.get("spend"):
                connection.execute(FILL_SPEND)
            set_mark(connection, mark_in(path))
    aside = finish_repair(path)
    lost = f"{recovered.n_lost} could not" if recovered.n_lost else "none is known to be lost"
    notice(
        f"{path}: is damaged ({damage}); {recovered.n_calls} calls were recovered, {lost}; "
        f"the damaged file is kept as {aside}; calls that are neither recovered nor in a table are made again"
    )


def finish_repair(path: Path) -> str | None:
    """Swap a damaged file for the repaired one, if there is one; the name that the damaged one has now."""
    if not repaired(path).exists():
        return None
    aside = path.with_name(f"damaged-{time.time_ns()}-{path.name}")
    for part in FILE_PARTS:
        with contextlib.suppress(FileNotFoundError):
            beside(path, part).rename(beside(aside, part))
    repaired(path).rename(path)
    path.with_suffix(".suspect").unlink(missing_ok=True)
    sync(path.parent)
    return aside.name


@contextlib.contextmanager
def _recovered_from(path: Path) -> Iterator[_Recovered]:
    """All rows of a damaged file that are whole, while the block lasts; of a missing file, those in its log.

    A call is whole if its checksum says so; any other row, if it makes sense.
    """
    log = beside(path, "-wal")
    frames = frames_of(log.read_bytes()) if log.exists() else []
    if not path.exists() or path.stat().st_size == 0:
        yield _whole_rows(RawFile(b"", frames))
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield _whole_rows(RawFile(data, frames))


def _whole_rows(raw: RawFile) -> _Recovered:
    best: dict[tuple[str, int], tuple[int, int]] = {}
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
            best[values[0], values[1]] = number, rowid  # the later one counts, as in the log
    chosen = {number for number, _ in best.values()}
    lost = seen - {rowid for _, rowid in best.values()}

    def calls() -> Iterator[Row]:
        for number, record in enumerate(raw.records()):
            if number in chosen:
                yield record.values[: len(COLUMNS)]

    in_order = {name: [rows[key] for key in sorted(rows)] for name, rows in others.items()}
    return _Recovered(calls, in_order, len(chosen), len(lost))


def _is_whole_call(record: Record) -> bool:
    *values, checksum = record.values
    return len(values) == len(COLUMNS) and is_as_written(values, checksum)


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
