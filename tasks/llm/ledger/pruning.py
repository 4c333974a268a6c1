"""Deletion of replies that are not needed any more, and adoption of replies for an address."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tasks.llm.ledger import files
from tasks.llm.ledger.entries import ENDED, Entry, statements_recording
from tasks.llm.ledger.ledger import ROWS_AT_ONCE, LedgerReader
from tasks.llm.ledger.opening import alone
from tasks.llm.replies import UNCLEAR
from tasks.rules.identity import adopted_key

DecidedCells = Callable[[Sequence[str]], Mapping[str, bool]]
"""Takes cells, and returns for those with a stored row whether it is decided."""


class Pruned(NamedTuple):
    """The result of pruning or adoption: the number of deleted or moved entries, and the freed
    bytes; nothing is changed while the ledger is in use.
    """

    entries: int = 0
    freed_bytes: int = 0
    is_in_use: bool = False


def prune(folder: Path, before_s: float, decided_cells: DecidedCells) -> Pruned:
    """Remove unneeded entries that ended before a moment (wall-clock time).

    They are the entries of cells whose row is decided, and spent entries of failed rows except
    unclear replies, which `ends_ok` may accept; never one whose row is not stored, nor a decision
    model's reply, from which another threshold makes new verdicts. A stored row needs no new call;
    but another cell with the same request (the same text in a new revision of the data set, or a
    second trial with the same response) then needs a new, paid call. The amount spent stays in the
    table `spend`.

    Each step is a transaction: a kill leaves a complete ledger, and the next call of this function
    continues. A ledger that is in use is left unchanged.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """
    query = f"""
        select
            calls.rowid,
            coalesce(calls.attempt <= spent.attempt, 0) and status <> '{UNCLEAR}' as is_spent,
            cell
        from calls
        left join spent using (call_key)
        where calls.rowid > ?
            and finished_at_s < ?
            and json_extract(parameters, '$.questions') is null
        order by calls.rowid
        limit ?
    """

    def remove(connection: sqlite3.Connection) -> int:
        last_rowid = 0
        n_removed = 0
        while True:
            values = (last_rowid, before_s, ROWS_AT_ONCE)
            entries = connection.execute(query, values).fetchall()
            if not entries:
                break
            is_decided_by_cell = decided_cells(sorted({cell for _, _, cell in entries}))
            rowids = []
            for rowid, is_spent, cell in entries:
                last_rowid = rowid
                if cell in is_decided_by_cell and (is_decided_by_cell[cell] or is_spent):
                    rowids.append((rowid,))
            n_removed += _delete(folder, connection, "delete from calls where rowid = ?", rowids)
        connection.execute(
            "delete from submitted_calls where submission in "
            "(select submission from submission_states where state = ? and at_s < ?)",
            (ENDED, before_s),
        )
        return n_removed

    return _change_and_vacuum(folder, remove)


def forget(folder: Path, removed: Mapping[str, float]) -> Pruned:
    """Delete the replies for removed rows, for each cell up to a moment (wall-clock time).

    Later calls would not use them anyway (`Call.not_before_s`). The amount spent stays in the table
    `spend`. A ledger that is in use is left unchanged.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """

    def remove(connection: sqlite3.Connection) -> int:
        query = "delete from calls where cell = ? and finished_at_s <= ?"
        return _delete(folder, connection, query, list(removed.items()))

    return _change_and_vacuum(folder, remove)


def adopt(folder: Path, model: str, address: str, cells: Mapping[str, str]) -> Pruned:
    """Give replies that were stored without an address this one, so that calls to it find them.

    Attempts that ended in stored failures keep their keys. A ledger that is in use is left
    unchanged.

    Args:
        folder: the folder of the ledger.
        model: the LiteLLM name of the model that gave the replies.
        address: the model's address.
        cells: the new id of each row whose id has changed.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """

    def move(connection: sqlite3.Connection) -> int:
        keys = connection.execute(
            "select distinct call_key from calls where model = ? and endpoint = ''", [model]
        ).fetchall()
        n_adopted = 0
        connection.execute("begin immediate")
        with connection, contextlib.closing(LedgerReader(files.ledger_path(folder))) as reader:
            for (key,) in keys:
                entries = reader.history(key).counting_entries
                _move(connection, entries, [_adopted(entry, address, cells) for entry in entries])
                n_adopted += len(entries)
            if n_adopted:
                files.change_mark(folder)  # the report's copies of replies belong to other rows now
        return n_adopted

    return _change_and_vacuum(folder, move)


def _adopted(entry: Entry, address: str, cells: Mapping[str, str]) -> Entry:
    return replace(
        entry,
        call_key=adopted_key(earlier_key=entry.call_key, address=address),
        endpoint=address,
        cell=cells.get(entry.cell, entry.cell),
    )


def _move(
    connection: sqlite3.Connection,
    entries: Sequence[Entry],
    adopted: Sequence[Entry],
) -> None:
    """Replace entries by adopted ones, with their log-probabilities; the spend stays."""
    add_calls, _, add_logprobs, _ = statements_recording(adopted)
    connection.executemany(*add_calls)
    connection.executemany(*add_logprobs)
    earlier_keys = [entry.key for entry in entries]
    for table in ("calls", "logprobs"):
        query = f"delete from {table} where call_key = ? and attempt = ?"
        connection.executemany(query, earlier_keys)


def _change_and_vacuum(folder: Path, change: Callable[[sqlite3.Connection], int]) -> Pruned:
    """Have a function remove or move entries and return their number, and free their space."""
    if not folder.is_dir():
        return Pruned()
    with alone(folder) as path:
        if path is None:
            return Pruned(is_in_use=True)
        n_bytes = path.stat().st_size
        with (
            files.refusing(path, "pruned"),
            contextlib.closing(files.connected(path)) as connection,
        ):
            n_entries = change(connection)
            # `execute` would free one page: it stops at the first step of a statement without
            # columns.
            connection.executescript("pragma incremental_vacuum")
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return Pruned(n_entries, n_bytes - path.stat().st_size)


def _delete(
    folder: Path,
    connection: sqlite3.Connection,
    query: str,
    values: Sequence[tuple[Any, ...]],
) -> int:
    """Delete replies with their log-probabilities, change the mark of deletions, and return the
    number of replies.
    """
    connection.execute("begin immediate")
    with connection:
        n_removed = max(0, connection.executemany(query, values).rowcount)
        if n_removed:
            connection.execute(
                "delete from logprobs where not exists (select 1 from calls "
                "where calls.call_key = logprobs.call_key and calls.attempt = logprobs.attempt)"
            )
            files.change_mark(folder)
        return n_removed
