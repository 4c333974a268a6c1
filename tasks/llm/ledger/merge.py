"""Merging the ledger files of version 1, which had one for each process, into the one ledger.

The merged file is whole before anything else is touched, and its name says so. A kill before loses only work that is
done again; after a kill in what follows, the next opening goes on with it.
"""

import contextlib
import fcntl
from collections.abc import Callable, Sequence
from pathlib import Path

from tasks.console import notice
from tasks.llm.ledger.paths import FILE_PARTS, beside, merged, old_files
from tasks.llm.ledger.schema import INSERTED, new_file, sync
from tasks.llm.ledger.spend import SPEND_SUMMED
from tasks.rules.errors import PipelineError

_BETTER = "({0}.is_final, {0}.status = 'ok', {0}.finished_at_s)"
_COLUMNS = ", ".join(INSERTED)
_COPY = (
    # Attempts of two files with the same number: the one that decided stands, then the one that was answered.
    f"""
    insert or replace into calls ({_COLUMNS})
    select {_COLUMNS} from old.calls as theirs
    where not exists (
        select 1 from main.calls as ours
        where ours.call_key = theirs.call_key and ours.attempt = theirs.attempt
            and {_BETTER.format("ours")} >= {_BETTER.format("theirs")}
    )
    order by theirs.rowid
    """,
    """
    insert into spent select * from old.spent where true
    on conflict do update set attempt = max(attempt, excluded.attempt)
    """,
    f"insert into spend select * from old.spend where true on conflict do update set {SPEND_SUMMED}",
    "insert or ignore into submissions select * from old.submissions",
    "insert or ignore into submitted_calls select * from old.submitted_calls order by rowid",
    "insert into submission_states select * from old.submission_states order by rowid",
)


def merge_old_files(ledger: Path, make_whole: Callable[[Path], None]) -> None:
    """Merge the files of version 1 into the ledger; only who has the ledger for himself may.

    `make_whole` checks a file and repairs it if it is damaged.

    Raises:
        PipelineError: a run of version 1 is at work, or a file cannot be read or written.
    """
    if not merged(ledger).exists():
        old = old_files(ledger.parent)
        if not old:
            return
        _refuse_running(old)
        sources = [ledger, *old] if ledger.exists() else old
        for path in sources:
            make_whole(path)
        n_calls = _merge(ledger, sources)
        notice(f"{ledger}: {n_calls} calls of {len(old)} ledger files were merged into this one")
    _put_in_place(ledger)


def _merge(ledger: Path, sources: Sequence[Path]) -> int:
    """Make the merged file; how many calls it holds."""
    with new_file(ledger, as_=merged(ledger)) as connection:
        for path in sources:
            connection.execute("attach ? as old", (str(path),))
            connection.execute("begin")
            with connection:
                for statement in _COPY:
                    connection.execute(statement)
            connection.execute("detach old")
        (n_calls,) = connection.execute("select count(*) from calls").fetchone()
    return int(n_calls)


def _put_in_place(ledger: Path) -> None:
    """Remove what is in the merged file by now, and give that its name."""
    for path in [ledger, *old_files(ledger.parent)]:
        for part in FILE_PARTS:
            beside(path, part).unlink(missing_ok=True)
    merged(ledger).replace(ledger)
    for lock in [*ledger.parent.glob("calls-*.lock"), ledger.with_name("claims.lock")]:
        lock.unlink(missing_ok=True)
    sync(ledger.parent)


def _refuse_running(old: Sequence[Path]) -> None:
    """Refuse as long as a process of version 1 writes one of its files, which it holds a lock for."""
    for path in old:
        with contextlib.suppress(FileNotFoundError), path.with_suffix(".lock").open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineError(f"{path}: a run of an older version is using it; wait for its end") from None
