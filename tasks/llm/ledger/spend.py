"""What was spent: sums over all attempts, the discarded ones included, which outlive the entries that they sum up."""

import contextlib
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.llm.ledger.damage import DAMAGE, refused
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.paths import beside, read_file
from tasks.llm.replies import OK

SPEND_KEY = ("run_id", "day", "purpose", "called_model")
_COUNTS = ("calls", "failed_calls", "unpriced_calls", "prompt_tokens", "cached_tokens", "completion_tokens")
SPEND_COLUMNS = (*SPEND_KEY, *_COUNTS, "cost_usd")
_SELECTED = ", ".join((*SPEND_KEY, *(f"cast({name} as integer)" for name in _COUNTS), "cost_usd"))
SPEND_TABLE = f"create table spend ({', '.join(SPEND_COLUMNS)}, primary key ({', '.join(SPEND_KEY)}))"
SPEND_SUMMED = ", ".join(f"{name} = {name} + excluded.{name}" for name in (*_COUNTS, "cost_usd"))
ADD_SPEND = f"insert into spend values ({', '.join('?' * len(SPEND_COLUMNS))}) on conflict do update set {SPEND_SUMMED}"
"""Takes what `spend_of` gives."""
FILL_SPEND = f"""
    insert into spend select
        run_id, date(finished_at_s, 'unixepoch'), 'unknown', model, count(*), sum(status != '{OK}'),
        sum(cost_usd is null), total(prompt_tokens), total(cached_tokens), total(completion_tokens), total(cost_usd)
    from calls group by 1, 2, 3, 4
"""
"""What the calls of a damaged file say whose sums are lost; they do not show what they were made for."""


def spend_of(entry: Entry) -> tuple[Any, ...]:
    """What one attempt adds, in the order of `SPEND_COLUMNS`; its day is that of its end, in UTC.

    An attempt is failed unless it brought a text, and unpriced when nobody knows what it cost: there is no price, or it
    ended without a report of its usage. One that the server turned away before it worked on it cost nothing.
    """
    reply = entry.reply
    day = datetime.fromtimestamp(entry.finished_at_s, UTC).date().isoformat()
    is_unpriced = reply.cost_usd is None and not entry.is_unpaid
    return (
        entry.run_id, day, entry.purpose, entry.model, 1, int(reply.status != OK), int(is_unpriced),
        reply.prompt_tokens or 0, reply.cached_tokens or 0, reply.completion_tokens or 0, reply.cost_usd or 0.0,
    )  # fmt: skip


def spend_in(folder: Path) -> list[dict[str, Any]]:
    """The spend of a ledger, a row for each run, day, purpose and called model, in that order.

    Tokens and `cost_usd` are sums of what is known; `unpriced_calls` is the number of calls whose cost is unknown.
    Nothing is written, and no call is read.

    Raises:
        PipelineError: a file cannot be read.
    """
    return [dict(zip(SPEND_COLUMNS, row, strict=True)) for row in read_file(folder, _rows_of) or ()]


def _rows_of(path: Path) -> list[tuple[Any, ...]]:
    try:
        with contextlib.closing(sqlite3.connect(_address(path), uri=True, timeout=30)) as connection:
            connection.execute("pragma query_only = on")
            return connection.execute(f"select {_SELECTED} from spend order by {', '.join(SPEND_KEY)}").fetchall()
    except DAMAGE as error:
        raise refused(path, "read", error, "`prbench run` repairs it or sets it aside") from error


def _address(path: Path) -> str:
    """Return how to open a file for reading.

    A connection that may not write leaves its share of the log's index behind when it is closed; this one merely does
    not. Where nothing can be written and no log is there, SQLite reads a file that it is told never changes.
    """
    how = "mode=rw" if os.access(path.parent, os.W_OK) else "mode=ro"
    is_alone = how == "mode=ro" and not beside(path, "-wal").exists()
    return f"{path.absolute().as_uri()}?{how}{'&immutable=1' if is_alone else ''}"
