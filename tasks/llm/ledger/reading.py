"""Reading the ledger's files: this process's own, and those of all others, whenever they begin."""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.console.progress import notice
from tasks.llm.ledger.entries import COLUMNS, Entry, History, is_as_written
from tasks.llm.ledger.files import DAMAGE, if_nobody_writes, is_damage, opened, reader_of
from tasks.rules.errors import PipelineError
from tasks.rules.text import one_line

_HISTORY = """
    select spent.attempt, calls.rowid, calls.* from (select ? as wanted)
    left join calls on calls.call_key = wanted left join spent on spent.call_key = wanted
"""
"""One statement, since each one begins and ends a read transaction."""
_TICK_NS = 50_000_000
"""Two changes of a folder within this time may leave it with the same time of change."""


@dataclass(frozen=True)
class _Reader:
    """A file as it was found: a connection, which file it was, and up to which row it was there when the run began."""

    connection: sqlite3.Connection
    inode: int
    mark: int


class LedgerFiles:
    """All files of a ledger, to be read.

    `marks` are the last rows that were there when the run began; without them it begins now. Other files are looked for
    whenever the folder has changed.

    Raises:
        PipelineError: a file is of a newer version, or the disk refuses to mend what a crash left.
    """

    def __init__(self, folder: Path, own: Path, marks: Mapping[str, int] | None = None) -> None:
        self._folder, self._own = folder, own
        self._looked_at_ns = 0
        self._readers: dict[Path, _Reader] = {}
        self._damaged_replies: Counter[Path] = Counter()
        self.marks = dict(marks or {})
        self._begins_now = marks is None
        self._look_around()
        self._begins_now = False

    def history(self, key: str) -> History:
        """All that is known of a call.

        Raises:
            PipelineError: a file is damaged.
        """
        self._look_around()
        entries: list[Entry] = []
        late: set[int] = set()
        spent = 0
        for path, reader in self._readers.items():
            try:
                for attempt, place, *row in reader.connection.execute(_HISTORY, (key,)):
                    spent = max(spent, attempt or 0)
                    if place is None or not self._is_as_written(path, row):
                        continue
                    entries.append(Entry.of(row[: len(COLUMNS)]))
                    if place > reader.mark:
                        late.add(entries[-1].attempt)
            except DAMAGE as error:
                raise _unreadable(path, error) from error
        return History(tuple(sorted(entries, key=lambda entry: entry.attempt)), spent, frozenset(late))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds in all files; one that lacks the table has nothing."""
        self._look_around()
        found: list[tuple[Any, ...]] = []
        for path, reader in self._readers.items():
            try:
                found += reader.connection.execute(query, values).fetchall()
            except DAMAGE as error:
                if "no such table" not in str(error):
                    raise _unreadable(path, error) from error
        return found

    def each(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """What a query finds in all files, one row after the other.

        Raises:
            PipelineError: a file is damaged.
        """
        for path, reader in self._readers.items():
            try:
                yield from reader.connection.execute(query, values)
            except sqlite3.DatabaseError as error:
                raise PipelineError(f"{path}: cannot be read ({error}); move it away and run again") from error

    def close(self) -> None:
        """Let go of the files."""
        for reader in self._readers.values():
            reader.connection.close()

    def _is_as_written(self, path: Path, row: Sequence[Any]) -> bool:
        """Whether a stored reply is what was written; one that is not answers nothing, and its call is made again."""
        # A file that an older program writes just now has no checksums yet.
        if is_as_written(row[: len(COLUMNS)], row[len(COLUMNS)] if len(row) > len(COLUMNS) else None):
            return True
        self._damaged_replies[path] += 1
        if self._damaged_replies[path] == 1:
            notice(f"{path}: a stored reply is damaged; its call, and others like it, are made again")
        return False

    def _look_around(self) -> None:
        """Take notice of files that were not there at the last look, or have been replaced since."""
        changed_at_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - once a call
        if changed_at_ns == self._looked_at_ns:
            return
        is_long_ago = abs(time.time_ns() - changed_at_ns) > _TICK_NS
        for path in sorted(self._folder.glob("calls-*.sqlite")):
            self._take_notice(path)
        self._looked_at_ns = changed_at_ns if is_long_ago else 0

    def _take_notice(self, path: Path) -> None:
        known = self._readers.get(path)
        try:
            if known is not None and known.inode == path.stat().st_ino:
                return
            if path != self._own:
                with if_nobody_writes(path) as is_free:
                    if is_free:
                        opened(path).close()  # mends what a crash left
            connection, inode = reader_of(path), path.stat().st_ino
        except (FileNotFoundError, sqlite3.OperationalError):
            if path.exists():
                raise
            return  # another process sets it aside just now, and will make a new one
        if known is not None:
            known.connection.close()
        if self._begins_now or known is not None:
            self.marks[path.name] = _last_row(connection)
        self._readers[path] = _Reader(connection, inode, self.marks.get(path.name, 0))


def _last_row(connection: sqlite3.Connection) -> int:
    try:
        return int(connection.execute("select coalesce(max(rowid), 0) from calls").fetchone()[0])
    except DAMAGE:  # is told when a call is looked up
        return 0


def _unreadable(path: Path, error: Exception) -> PipelineError:
    if is_damage(error, path):
        return PipelineError(
            f"{path}: is damaged ({one_line(str(error))}); run again: it is repaired when no other run has it open"
        )
    return PipelineError(f"{path}: cannot be read ({one_line(str(error))}); run again")
