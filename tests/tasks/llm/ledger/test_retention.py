"""Retention: replies that became rows long ago leave the ledger, nothing else does, and disk space
is freed.
"""

import os
import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger import pruning
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.pruning import DecidedCells, Pruned, forget, prune
from tasks.llm.replies import Reply
from tests.kit import write_calls
from tests.tasks.llm.ledger.conftest import PAGE_BYTES, database, destroy_page, entry


def long_entry(number: int, **values: Any) -> Entry:
    reply = Reply("ok", random.Random(number).randbytes(1_500).hex(), cost_usd=1.0)
    return entry(number, reply, **{"finished_at_s": 0.0} | values)


def attempts_in(folder: Path) -> set[tuple[str, int]]:
    """The keys and attempts of the calls that are left."""
    with database(folder) as connection:
        assert connection.execute("pragma quick_check").fetchone() == ("ok",)
        return set(connection.execute("select call_key, attempt from calls"))


def all_decided(cells: Sequence[str]) -> dict[str, bool]:
    return dict.fromkeys(cells, True)


def decided_by(rows: Mapping[str, bool]) -> DecidedCells:
    """Look up whether rows are decided; cells that are missing here have no row."""
    return lambda cells: {cell: rows[cell] for cell in cells if cell in rows}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_only_what_ended_before_and_has_its_row_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.llm.ledger.pruning.ROWS_AT_ONCE", 7)
    draw = random.Random(5)
    is_decided = {}
    spent_attempts = {}
    entries = []
    unneeded_attempts = set()
    for number in range(60):
        key = f"key-{number}"
        cell = f"cell-{number}"
        if draw.random() < 0.7:
            is_decided[cell] = draw.random() < 0.5
        if draw.random() < 0.5:
            spent_attempts[key] = draw.randint(1, 2)
        for attempt in (1, 2):
            is_old = draw.random() < 0.5
            finished_at_s = 10.0 if is_old else 90.0
            entries.append(
                long_entry(number, attempt=attempt, finished_at_s=finished_at_s)
            )
            is_spent = attempt <= spent_attempts.get(key, 0)
            if is_old and cell in is_decided and (is_decided[cell] or is_spent):
                unneeded_attempts.add((key, attempt))
    write_calls(tmp_path, entries, list(spent_attempts.items()))
    all_attempts = attempts_in(tmp_path)

    pruned = prune(tmp_path, 50.0, decided_by(is_decided))

    assert attempts_in(tmp_path) == all_attempts - unneeded_attempts
    assert len(unneeded_attempts) > 10
    assert pruned.entries == len(unneeded_attempts)
    assert prune(tmp_path, 50.0, decided_by(is_decided)) == Pruned()


def test_disk_space_is_freed_and_the_spend_stays(tmp_path):
    entries = [
        long_entry(number, finished_at_s=float(number)) for number in range(1_000)
    ]
    write_calls(tmp_path, entries)
    n_bytes = size_of(tmp_path)
    spend = spend_in(tmp_path)

    pruned = prune(tmp_path, 900.0, all_decided)

    assert pruned.entries == 900
    assert pruned.freed_bytes == n_bytes - size_of(tmp_path)
    assert pruned.freed_bytes > 0.85 * n_bytes
    assert spend_in(tmp_path) == spend
    assert attempts_in(tmp_path) == {
        (f"key-{number}", 1) for number in range(900, 1_000)
    }
    assert not list(tmp_path.glob("*-wal"))
    assert not list(tmp_path.glob("*-shm"))


def test_a_ledger_that_is_in_use_is_pruned_later(tmp_path):
    write_calls(tmp_path, [long_entry(1)])

    with closing(Ledger(tmp_path)):
        pruned_in_use = prune(tmp_path, 1e12, all_decided)
    pruned_later = prune(tmp_path, 1e12, all_decided)

    assert pruned_in_use == Pruned(is_in_use=True)
    assert pruned_later.entries == 1


def prune_and_die(folder: Path):
    """Prune in steps of 50 entries, and die in the third step."""
    pruning.ROWS_AT_ONCE = 50
    steps = iter(range(3))

    def look_up(cells):
        if next(steps) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return all_decided(cells)

    prune(folder, 1e12, look_up)


def test_a_kill_in_the_middle_leaves_a_whole_ledger_and_the_next_pruning_continues(
    tmp_path,
):
    write_calls(tmp_path, [long_entry(number) for number in range(400)])
    process = get_context("spawn").Process(target=prune_and_die, args=(tmp_path,))

    process.start()
    process.join()
    n_left = len(attempts_in(tmp_path))
    pruned = prune(tmp_path, 1e12, all_decided)

    assert process.exitcode == -signal.SIGKILL
    assert n_left == 300
    assert pruned.entries == 300
    assert attempts_in(tmp_path) == set()


DELETIONS = {
    "no entry is that old": (
        partial(prune, before_s=5.0, decided_cells=all_decided),
        False,
    ),
    "a pruned reply": (
        partial(prune, before_s=15.0, decided_cells=all_decided),
        True,
    ),
    "a removed row": (partial(forget, removed={"cell-2": 20.0}), True),
    "a removed row without a reply": (
        partial(forget, removed={"cell-9": 20.0}),
        False,
    ),
}


@pytest.mark.parametrize(
    ("delete", "changes_mark"), DELETIONS.values(), ids=DELETIONS
)
def test_the_mark_of_deletions_changes_whenever_replies_are_deleted(
    delete,
    changes_mark,
    tmp_path,
):
    write_calls(
        tmp_path, [long_entry(number, finished_at_s=10.0) for number in range(3)]
    )
    forget(tmp_path, {"cell-0": 20.0})
    mark = deletion_mark(tmp_path)

    delete(tmp_path)

    assert mark > 0
    assert (deletion_mark(tmp_path) != mark) == changes_mark


def test_a_ledger_without_deletions_has_no_mark(tmp_path):
    write_calls(tmp_path, [long_entry(0)])

    prune(tmp_path, -1.0, all_decided)

    assert deletion_mark(tmp_path) == 0


def test_the_mark_of_deletions_outlives_a_repair(tmp_path):
    write_calls(tmp_path, [long_entry(number) for number in range(20)])
    prune(tmp_path, 15.0, decided_by({"cell-0": True}))
    mark = deletion_mark(tmp_path)
    destroy_page(tmp_path / "calls.sqlite", PAGE_BYTES)

    Ledger(tmp_path).close()

    assert len(list(tmp_path.glob("damaged-*.sqlite"))) == 1
    assert deletion_mark(tmp_path) == mark > 0
