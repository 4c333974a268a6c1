"""Reading the ledger, also what other processes write to it meanwhile."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.console import notice
from tasks.llm.ledger.damage import DAMAGE, refused
from tasks.llm.ledger.entries import COLUMNS, Entry, History, is_as_written
from tasks.llm.ledger.files import in_use, is_damage, reader_of
from tasks.llm.ledger.paths import ledger_path
from tasks.llm.replies import EMPTY
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line

_HISTORY = """
    select spent.attempt, logprobs.tokens, calls.rowid, calls.* from (select ? as wanted)
    left join calls on calls.call_key = wanted left join spent on spent.call_key = wanted
    left join logprobs on logprobs.call_key = wanted and logprobs.attempt = calls.attempt
"""
"""One statement, since each one begins and ends a read transaction."""
_REPLIES_FOR = f"""
    select cell, call_key, attempt, finished_at_s, coalesce(text, ''), parameters from calls
    where is_final and (text is not null or status = '{EMPTY}') and cell in (select value from json_each(?))
"""


class LedgerReader:
    """The ledger's file, to be read; what comes after this was made is known as late.

    Raises:
        PipelineError: the file is of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = reader_of(path)
        self._n_damaged_replies = 0
        try:
            query = "select coalesce(max(rowid), 0) from calls"
            self._last_row = int(self._connection.execute(query).fetchone()[0])
        except DAMAGE:  # is reported when a call is looked up
            self._last_row = 0

    def history(self, key: str) -> History:
        """All that is known of a call.

        Raises:
            PipelineError: the file is damaged.
        """
        entries: list[Entry] = []
        late: set[int] = set()
        spent = 0
        for attempt, logprobs, place, *row in self.rows(_HISTORY, key):
            spent = attempt or 0
            if place is None or not self._is_as_written(row):
                continue
            entries.append(Entry.of(row[: len(COLUMNS)], logprobs))
            if place > self._last_row:
                late.add(entries[-1].attempt)
        return History(tuple(sorted(entries, key=lambda entry: entry.attempt)), spent, frozenset(late))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds.

        Raises:
            PipelineError: the file is damaged.
        """
        try:
            return self._connection.execute(query, values).fetchall()
        except DAMAGE as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _is_as_written(self, row: Sequence[Any]) -> bool:
        """Whether a stored reply is what was written; one that is not answers nothing, and its call is made again."""
        if is_as_written(row[: len(COLUMNS)], row[len(COLUMNS)]):
            return True
        self._n_damaged_replies += 1
        if self._n_damaged_replies == 1:
            notice(f"{self._path}: a stored reply is damaged; its call, and others like it, are made again")
        return False

    def _unreadable(self, error: Exception) -> PipelineError:
        if is_damage(error, self._path):
            cause = one_line(str(error))
            return PipelineError(
                f"{self._path}: is damaged ({cause}); run again: it is repaired when no other run has it open"
            )
        return refused(self._path, "read", error, "run again")


@dataclass(frozen=True)
class KeptReply:
    """A reply: the row that it was made for, the call that it answers, when it came, and the call's parameters."""

    cell: str
    call_key: str
    attempt: int
    finished_at_s: float
    text: str
    parameters: str


class KeptReplies:
    """The replies of a ledger, read from the disk each time."""

    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader

    def made_for(self, cells: Collection[str]) -> Iterator[KeptReply]:
        """Those that were made for some rows, empty ones too.

        Raises:
            PipelineError: the file is damaged.
        """
        return (KeptReply(*row) for row in self._reader.rows(_REPLIES_FOR, json.dumps(sorted(cells))))


@contextmanager
def kept_replies(folder: Path) -> Iterator[KeptReplies]:
    """The replies of the ledger in a folder, while the block lasts."""
    with in_use(folder):
        reader = LedgerReader(ledger_path(folder))
        try:
            yield KeptReplies(reader)
        finally:
            reader.close()
