"""Damage to a ledger file: readable rows are recovered, damaged ones are never used, lost ones are
paid again.

SQLite's own map of the undamaged file (`dbstat`) tells which rows are readable: those without a
damaged page. Also kills, a full disk, and other programs that use the file.
"""

import asyncio
import os
import random
import re
import shutil
import sqlite3
import time
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.calls.batches import Submissions, SubmittedCall
from tasks.llm.ledger import opening
from tasks.llm.ledger.entries import COLUMNS, Entry, Statement
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.rules.errors import PipelineError
from tests.faults.server import HttpResponse
from tests.kit import Patch, Printed, one_line
from tests.tasks.llm.conftest import Calling, Serve, call_to, written

pytestmark = pytest.mark.usefixtures("hurried")

PAGE = 4096
N_CALLS = 400
INDEX = "sqlite_autoindex_calls_1"


def destroy(path: Path, first: int) -> None:
    """Overwrite a page of a file with meaningless bytes."""
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xa5" * PAGE)


def root_of(path: Path, name: str) -> int:
    """Return the offset of the root page of a table or an index."""
    with closing(sqlite3.connect(path)) as connection:
        query = "select (rootpage - 1) * ? from sqlite_master where name = ?"
        return int(connection.execute(query, (PAGE, name)).fetchone()[0])


def entry(number: int) -> Entry:
    """A call with a unique reply; some replies are so long that they need pages of their own."""
    text = f"reply {number} " + "word " * random.Random(number).choice([5, 100, 400, 3_000])
    reply = Reply(
        "ok",
        text,
        prompt_tokens=number,
        cost_usd=number / 7,
        prices=Prices(1.0, None, 2.0, "list"),
    )
    return Entry(
        f"{number:064x}", 1, f"cell-{number}", "a-run", "m", "", "{}", reply, True, 1.7e9 + number
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with hundreds of calls, an open batch, and failed attempts that have become
    rows.
    """
    folder = tmp_path_factory.mktemp("whole")
    written(folder, [entry(number) for number in range(N_CALLS)], [("a failed one", 3)])

    async def submit() -> None:
        with closing(Ledger(folder)) as ledger:
            submission = await Submissions(ledger, "an endpoint").begin(
                [SubmittedCall("key", "cell", "{}")]
            )
            await Submissions(ledger, "an endpoint").submitted(submission, "batch-1")

    asyncio.run(submit())
    return folder / "calls.sqlite"


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of that ledger, to damage."""
    return Path(shutil.copy(whole, tmp_path / "calls.sqlite"))


def calls_in(path: Path) -> dict[int, tuple[Any, ...]]:
    """The calls in a file, by number."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        return {
            int(row[0], 16): row
            for row in connection.execute(f"select {', '.join(COLUMNS)} from calls")
        }


def pages_of(path: Path) -> dict[int, set[int]]:
    """The pages of each call, by SQLite's own count."""
    query = "select path, pageno, ncell, pagetype from dbstat where name = 'calls' order by path"
    with closing(sqlite3.connect(path)) as connection:
        numbers = [
            int(key, 16)
            for (key,) in connection.execute("select call_key from calls order by rowid")
        ]
        rows = connection.execute(query).fetchall()
    cells: dict[str, list[set[int]]] = {}
    for path_in_tree, page, n_cells, _ in (row for row in rows if row[3] == "leaf"):
        cells[path_in_tree] = [{page} for _ in range(n_cells)]
    for path_in_tree, page, _, _ in (row for row in rows if row[3] == "overflow"):
        leaf, _, rest = path_in_tree.rpartition("/")
        cells[f"{leaf}/"][int(rest.partition("+")[0], 16)].add(page)
    in_order = [pages for path_in_tree in sorted(cells) for pages in cells[path_in_tree]]
    return dict(zip(numbers, in_order, strict=True))


def repaired(path: Path, capsys: Printed) -> tuple[dict[int, tuple[Any, ...]], str]:
    """Open a ledger, and return its content afterwards and the printed messages."""
    capsys.readouterr()
    Ledger(path.parent).close()
    return calls_in(path), capsys.readouterr().err


def hit(path: Path, seed: int, n_bytes: int, first: int = 0) -> set[int]:
    """Change bytes at random, and return the changed pages."""
    dice = random.Random(seed)
    offsets = sorted(dice.sample(range(first, path.stat().st_size), n_bytes))
    content = bytearray(path.read_bytes())
    for offset in offsets:
        content[offset] ^= dice.randrange(1, 256)
    path.write_bytes(content)
    return {offset // PAGE + 1 for offset in offsets}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_make_no_call_wrong_and_hide_none(
    seed: int, whole: Path, copy: Path, capsys: Printed
) -> None:
    first = 8 * PAGE  # behind the tables' root pages: without its root page a table is lost
    struck = hit(copy, seed, [1, 30, 300, 300][seed], first=first if seed < 3 else 0)
    before = calls_in(whole)
    pages = pages_of(whole)
    assert len(pages) == N_CALLS
    after, _ = repaired(copy, capsys)
    with closing(Ledger(copy.parent)) as ledger:
        used = {
            number
            for number in after
            if ledger.history(f"{number:064x}").reply_for(f"cell-{number}")
        }
    assert {number: before[number] for number in used} == {number: after[number] for number in used}
    if seed < 3:
        assert used >= {number for number in pages if not pages[number] & struck}


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.9, 0.999])
def test_every_whole_call_of_a_cut_file_is_recovered(
    share: float, whole: Path, copy: Path, capsys: Printed
) -> None:
    left = int(copy.stat().st_size * share)
    os.truncate(copy, left)
    after, printed = repaired(copy, capsys)
    left_whole = {number for number, pages in pages_of(whole).items() if max(pages) <= left // PAGE}
    assert len(left_whole - after.keys()) <= 1  # the call at the cut may be lost
    assert after.items() <= calls_in(whole).items()
    assert re.search(rf"; {len(after)} of \d+ calls ever recorded were recovered", printed)


def killed_in_a_run(folder: Path, n_calls: int) -> tuple[Path, Path]:
    """The folder of a ledger with some calls, and a copy of it in the state after a kill."""
    running = folder / "running"
    killed = folder / "killed"

    async def fill() -> None:
        ledger = Ledger(running)
        for number in range(n_calls):
            await ledger.record(entry(number))
        shutil.copytree(running, killed)
        ledger.close()

    asyncio.run(fill())
    return running, killed


@pytest.mark.parametrize("seed", range(3))
def test_damage_to_the_log_of_a_killed_run_spares_earlier_calls(seed: int, tmp_path: Path) -> None:
    """SQLite ends the log at the first damaged page, as at a commit that was cut off."""
    running, killed = killed_in_a_run(tmp_path, 60)
    log = killed / "calls.sqlite-wal"
    assert log.stat().st_size > 50 * PAGE
    hit(log, seed, 1 + seed, first=0 if seed else 40)
    if not seed:  # the log's header: without it SQLite silently ignores the whole log
        hit(log, seed, 1, first=16)

    Ledger(killed).close()

    before = calls_in(running / "calls.sqlite")
    after = calls_in(killed / "calls.sqlite")
    assert after == {number: before[number] for number in range(len(after))}


def test_a_log_that_ends_in_a_cut_off_commit_is_no_damage(tmp_path: Path, capsys: Printed) -> None:
    _, killed = killed_in_a_run(tmp_path, 30)
    log = killed / "calls.sqlite-wal"
    os.truncate(log, log.stat().st_size - 1000)
    after, printed = repaired(killed / "calls.sqlite", capsys)
    assert printed == ""
    assert list(killed.glob("damaged-*")) == []
    assert len(after) >= 28


@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 1000, bytes(3 * PAGE)])
def test_what_is_no_database_is_kept_aside_and_begun_anew(
    content: bytes, tmp_path: Path, capsys: Printed
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(content)
    after, printed = repaired(path, capsys)
    (aside,) = tmp_path.glob("damaged-*")
    assert after == {}
    assert content == aside.read_bytes()
    assert len(printed.splitlines()) == 1
    assert aside.name in printed


@pytest.mark.parametrize("damaged", [INDEX, "spend"])
def test_open_batches_and_spent_failures_and_sums_outlive_damage(
    damaged: str, copy: Path, capsys: Printed
) -> None:
    destroy(copy, root_of(copy, damaged))
    assert "damaged" in repaired(copy, capsys)[1]
    with closing(Ledger(copy.parent)) as ledger:
        (open_,) = Submissions(ledger, "an endpoint").open()
        assert open_.batch_id == "batch-1"
        assert [call.call_key for call in open_.calls] == ["key"]
        assert ledger.history("a failed one").next_attempt == 4
    assert [(row["calls"], row["purpose"]) for row in spend_in(copy.parent)] == [
        (N_CALLS, "unknown")
    ]


@pytest.mark.parametrize("after", ["the new file", "the old one is aside"])
def test_a_kill_in_the_midst_of_a_repair_loses_nothing(
    after: str, whole: Path, copy: Path, monkeypatch: Patch
) -> None:
    destroy(copy, root_of(copy, INDEX))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    rename = Path.rename
    name = "calls.sqlite" if after == "the new file" else "repaired-calls.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", lambda p, to: killed() if p.name == name else rename(p, to))
        with pytest.raises(KeyboardInterrupt):
            Ledger(copy.parent)
    assert spend_in(whole.parent) == spend_in(copy.parent)  # its rows are still readable
    Ledger(copy.parent).close()
    assert calls_in(whole) == calls_in(copy)
    assert len(list(copy.parent.glob("damaged-*.sqlite"))) == 1
    assert not list(copy.parent.glob("repaired-*"))


def test_a_call_whose_stored_reply_was_changed_is_made_again(
    calling: Calling, serve: Serve, capsys: Printed
) -> None:
    server = serve(HttpResponse("The result is 42."))
    calls = [call_to(server, f"question {n}") for n in range(60)]
    calling.at_once(*calls)
    path = calling.folder / "calls.sqlite"
    path.write_bytes(path.read_bytes().replace(b"The result is 42.", b"The result is 43.", 1))
    for _ in range(2):
        assert {reply.text for reply in calling.at_once(*calls)} == {"The result is 42."}
        assert len(server.book) == 61
    (printed,) = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
    assert str(path) in printed


def test_damage_in_a_run_is_repaired_by_the_next(
    whole: Path, copy: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    """A file that is too large to be checked at each opening is checked after a failed read."""
    monkeypatch.setattr(opening, "MOST_CHECKED_BYTES", 0)
    destroy(copy, root_of(copy, INDEX))
    with (
        closing(Ledger(copy.parent)) as ledger,
        pytest.raises(PipelineError, match=one_line("is damaged")) as error,
    ):
        ledger.history(f"{7:064x}")
    assert "run again: it is repaired" in str(error.value)
    after, printed = repaired(copy, capsys)
    assert f"{N_CALLS} of {N_CALLS} calls ever recorded were recovered" in printed
    assert calls_in(whole) == after


async def test_what_is_written_in_one_transaction_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    ledger = Ledger(tmp_path)
    submissions = Submissions(ledger, "an endpoint")

    def values() -> Any:
        yield "half", "an endpoint"
        raise ValueError("cut off in the middle")

    half: Statement = ("insert into submissions values (?, ?)", values())
    with pytest.raises(PipelineError, match="cut off"):
        await ledger.write(half)
    assert submissions.open() == []
    with pytest.raises(PipelineError):  # after a failed write nothing more is written
        await submissions.begin([])
    ledger.close()


def record_on(folder: Path, n_acknowledged: "Synchronized[int]") -> None:
    """Record calls without end, and report how many are stored."""

    async def run() -> None:
        ledger = Ledger(folder)
        while True:
            await ledger.record(entry(n_acknowledged.value))
            n_acknowledged.value += 1

    asyncio.run(run())


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing_that_it_was_told_is_stored(tmp_path: Path) -> None:
    spawning = get_context("spawn")
    n_acknowledged = spawning.Value("i", 0)
    process = spawning.Process(target=record_on, args=(tmp_path, n_acknowledged))
    process.start()
    while n_acknowledged.value < 150:
        assert process.is_alive()
        time.sleep(0.001)
    process.kill()
    process.join()
    kept = calls_in(tmp_path / "calls.sqlite").keys()
    assert kept >= set(range(n_acknowledged.value))
    assert len(kept) == sum(row["calls"] for row in spend_in(tmp_path))


def test_a_file_that_somebody_else_has_locked_is_not_taken_for_damaged(
    copy: Path, monkeypatch: Patch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: connect(*given, **named | {"timeout": 0.2})
    )
    with closing(connect(copy, isolation_level=None)) as holder:
        holder.execute("pragma locking_mode = exclusive")
        holder.execute("begin exclusive")
        with pytest.raises(PipelineError, match="lock"):
            Ledger(copy.parent).history("a key")
        with pytest.raises(PipelineError, match="that no other program uses it"):
            spend_in(copy.parent)
    assert not list(copy.parent.glob("damaged-*"))


@pytest.mark.parametrize("folder", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_written_is_one_line(folder: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(PipelineError, match=rf"{tmp_path / folder}.*cannot be written"):
        Ledger(tmp_path / folder)


async def test_a_ledger_that_another_machine_writes_now_is_left_as_it_is(tmp_path: Path) -> None:
    lost: list[str] = []
    ledger = Ledger(tmp_path, lambda: next(iter(lost), None))
    await ledger.record(entry(0))
    before = {name: (tmp_path / name).read_bytes() for name in ("calls.sqlite", "calls.sqlite-wal")}
    lost.append("node7 took over")
    with pytest.raises(PipelineError, match="node7 took over"):
        ledger.refuse_if_broken()
    with pytest.raises(PipelineError, match="node7 took over"):
        await ledger.record(entry(1))
    ledger.close()
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
