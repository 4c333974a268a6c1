"""Merging the ledger files of version 1, which had one for each process, into the one ledger.

The files first get names that no program of version 1 writes to: whatever has such a name is in the merged file, once
there is one. That is whole before anything is deleted, and its name says so. A kill before loses only work that is done
again; after a kill in what follows, the next opening goes on with it.
"""

import contextlib
import fcntl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tasks.console import notice
from tasks.llm.ledger.deletions import mark_in, set_mark
from tasks.llm.ledger.paths import FILE_PARTS, beside, merged, old_files, taken, taken_files
from tasks.llm.ledger.schema import INSERTED, empty_log, new_file, sync
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
    "insert or replace into logprobs select * from old.logprobs",
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
    folder = ledger.parent
    while merged(ledger).exists() or taken_files(folder) or old_files(folder):
        with _without_version_1(folder) as locks:
            if not merged(ledger).exists():
                _merge(ledger, [path for path in old_files(folder) if path.with_suffix(".lock") in locks], make_whole)
            in_merged = [beside(path, part) for path in [ledger, *taken_files(folder)] for part in FILE_PARTS]
            for path in [*in_merged, *locks, folder / "claims.lock"]:
                path.unlink(missing_ok=True)
            merged(ledger).replace(ledger)
            sync(folder)


def _merge(ledger: Path, old: Sequence[Path], make_whole: Callable[[Path], None]) -> None:
    """Make the merged file of the ledger and all files of version 1."""
    for path in [ledger, *taken_files(ledger.parent), *old]:
        make_whole(path)
    for path in old:
        empty_log(path)
        path.rename(taken(path))
    sources = [ledger, *taken_files(ledger.parent)]
    with new_file(ledger, as_=merged(ledger)) as connection:
        for path in sources:
            connection.execute("attach ? as old", (str(path),))
            connection.execute("begin")
            with connection:
                for statement in _COPY:
                    connection.execute(statement)
            connection.execute("detach old")
        set_mark(connection, mark_in(ledger))
        (n_calls,) = connection.execute("select count(*) from calls").fetchone()
    notice(f"{ledger}: {n_calls} calls of {len(sources) - 1} ledger files were merged into this one")


@contextlib.contextmanager
def _without_version_1(folder: Path) -> Iterator[list[Path]]:
    """Hold the locks by which processes of version 1 share out its files, and yield them."""
    paths = sorted({*folder.glob("calls-*.lock"), *(path.with_suffix(".lock") for path in old_files(folder))})
    with contextlib.ExitStack() as locks:
        for path in paths:
            lock = locks.enter_context(path.open("a+"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file = path.with_suffix(".sqlite")
                raise PipelineError(f"{file}: a run of an older version is using it; wait for its end") from None
        yield paths
