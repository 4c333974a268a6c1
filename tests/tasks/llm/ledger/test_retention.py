"""Retention: replies that became rows long ago leave the ledger, nothing else does, and disk space
is freed.
"""

import os
import random
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from tasks.llm.ledger import pruning
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.pruning import DecidedCells, Pruned, forget, prune
from tasks.llm.replies import Reply
from tests.tasks.llm.conftest import written


def prune_and_die(folder: Path) -> None:
    """Prune in steps of 50 entries, and die in the third step."""
    pruning.ROWS_AT_ONCE = 50
    steps = iter(range(3))

    def stored(cells: Sequence[str]) -> dict[str, bool]:
        if next(steps) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return all_stored(cells)

    prune(folder, 1e12, stored)


def entry(number: int, *, finished_at_s: float = 0.0, attempt: int = 1) -> Entry:
    reply = Reply("ok", random.Random(number).randbytes(1_500).hex(), cost_usd=1.0)
    return Entry(
        f"key-{number}",
        attempt,
        f"cell-{number}",
        "a-run",
        "m",
        "",
        "{}",
        reply,
        True,
        finished_at_s,
    )


def left(folder: Path) -> set[tuple[str, int]]:
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        assert connection.execute("pragma quick_check").fetchone() == ("ok",)
        return set(connection.execute("select call_key, attempt from calls"))


def all_stored(cells: Sequence[str]) -> dict[str, bool]:
    return dict.fromkeys(cells, True)


def knowing(rows: Mapping[str, bool]) -> DecidedCells:
    return lambda cells: {cell: rows[cell] for cell in cells if cell in rows}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_only_what_ended_before_and_has_its_row_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.llm.ledger.pruning.ROWS_AT_ONCE", 7)
    draw = random.Random(5)
    entries = [
        entry(number, attempt=attempt, finished_at_s=draw.choice([10.0, 90.0]))
        for number in range(60)
        for attempt in (1, 2)
    ]
    rows = {f"cell-{number}": draw.random() < 0.5 for number in range(60) if draw.random() < 0.7}
    spent = {f"key-{number}": draw.randint(1, 2) for number in range(60) if draw.random() < 0.5}
    written(tmp_path, entries, list(spent.items()))

    def may_go(each: Entry) -> bool:
        if each.finished_at_s >= 50.0 or each.cell not in rows:
            return False
        return rows[each.cell] or spent.get(each.call_key, 0) >= each.attempt

    pruned = prune(tmp_path, 50.0, knowing(rows))
    kept = {(each.call_key, each.attempt) for each in entries if not may_go(each)}
    assert kept == left(tmp_path)
    assert pruned.entries == len(entries) - len(kept) > 10
    assert Pruned() == prune(tmp_path, 50.0, knowing(rows))


def test_the_disk_gets_the_space_back_and_what_was_spent_stays(tmp_path: Path) -> None:
    written(tmp_path, [entry(number, finished_at_s=float(number)) for number in range(1_000)])
    before = size_of(tmp_path)
    spend = spend_in(tmp_path)
    pruned = prune(tmp_path, 900.0, all_stored)
    assert pruned.entries == 900
    assert pruned.freed_bytes == before - size_of(tmp_path) > 0.85 * before
    assert spend == spend_in(tmp_path)
    assert {(f"key-{number}", 1) for number in range(900, 1_000)} == left(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(("-wal", "-shm"))]


def test_a_ledger_that_is_in_use_is_left_for_later(tmp_path: Path) -> None:
    written(tmp_path, [entry(1)])
    with closing(Ledger(tmp_path)):
        assert Pruned(is_in_use=True) == prune(tmp_path, 1e12, all_stored)
    assert prune(tmp_path, 1e12, all_stored).entries == 1


def test_a_kill_in_the_middle_leaves_a_whole_ledger_and_the_next_time_goes_on(
    tmp_path: Path,
) -> None:
    written(tmp_path, [entry(number, finished_at_s=1.0) for number in range(400)])
    process = get_context("spawn").Process(target=prune_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(left(tmp_path)) == 300
    assert prune(tmp_path, 1e12, all_stored).entries == 300
    assert left(tmp_path) == set()


def test_the_ledger_has_another_mark_whenever_replies_were_deleted_from_it(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    marks = [deletion_mark(folder)]
    written(folder, [entry(number, finished_at_s=10.0) for number in range(3)])

    for delete in (
        lambda: prune(folder, 5.0, all_stored),  # no entry is that old
        lambda: prune(folder, 15.0, knowing({"cell-0": True})),
        lambda: prune(folder, 15.0, knowing({"cell-1": True})),
        lambda: forget(folder, {"cell-2": 20.0}),
        lambda: forget(folder, {"cell-2": 20.0}),
    ):
        delete()
        marks.append(deletion_mark(folder))
    assert marks[0] == 0
    assert marks[1] == 0
    assert len(set(marks)) == 4
    assert marks[-2] == marks[-1]


def test_the_mark_of_deletions_outlives_a_repair(tmp_path: Path) -> None:
    written(tmp_path, [entry(number) for number in range(20)])
    prune(tmp_path, 15.0, knowing({"cell-0": True}))
    mark = deletion_mark(tmp_path)
    path = tmp_path / "calls.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])
    Ledger(tmp_path).close()

    assert len(list(tmp_path.glob("damaged-*.sqlite"))) == 1
    assert mark == deletion_mark(tmp_path) > 0
