"""Damage to a ledger file: what SQLite still reads is recovered, nothing wrong is used, what is gone is paid again.

SQLite's own map of the undamaged file (`dbstat`) tells what that is: the rows none of whose pages was hit. Kills, a
full disk, and other hands on the file, too.
"""

import asyncio
import random
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
from tasks.llm.ledger import files
from tasks.llm.ledger.entries import COLUMNS, Entry, Statement
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.rules.errors import PipelineError
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to, written
from tests.tasks.llm.ledger.conftest import filled, stored

pytestmark = pytest.mark.usefixtures("hurried")

PAGE = 4096
N_CALLS = 400
INDEX = "sqlite_autoindex_calls_1"


def destroy(path: Path, first: int) -> None:
    """Make a page's worth of a file meaningless."""
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xa5" * PAGE)


def root_of(path: Path, name: str) -> int:
    """Return the offset of the root page of a table or an index."""
    with closing(sqlite3.connect(path)) as connection:
        query = "select (rootpage - 1) * ? from sqlite_master where name = ?"
        return int(connection.execute(query, (PAGE, name)).fetchone()[0])


def entry(number: int) -> Entry:
    """A call with a reply of its own; some take pages of their own, as long replies do."""
    text = f"reply {number} " + "word " * random.Random(number).choice([5, 100, 400, 3_000])
    reply = Reply("ok", text, prompt_tokens=number, cost_usd=number / 7, prices=Prices(1.0, None, 2.0, "list"))
    return Entry(f"{number:064x}", 1, f"cell-{number}", "a-run", "m", "", "{}", reply, True, 1.7e9 + number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with hundreds of calls, a batch that is open, and failures that are spent."""
    folder = tmp_path_factory.mktemp("whole")

    written(folder, [entry(number) for number in range(N_CALLS)], [("a failed one", 3)])

    async def submit() -> None:
        with closing(Ledger(folder)) as ledger:
            submission = await Submissions(ledger).begin("an endpoint", [SubmittedCall("key", "cell", "{}")])
            await Submissions(ledger).submitted(submission, "batch-1")

    asyncio.run(submit())
    return folder / "calls.sqlite"


def calls_in(path: Path) -> dict[int, tuple[Any, ...]]:
    """The calls of a file by their number."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        return {int(row[0], 16): row for row in connection.execute(f"select {', '.join(COLUMNS)} from calls")}


def pages_of(path: Path) -> dict[int, set[int]]:
    """Of each call the pages that it stands on, as SQLite counts them."""
    query = "select path, pageno, ncell, pagetype from dbstat where name = 'calls' order by path"
    with closing(sqlite3.connect(path)) as connection:
        numbers = [int(key, 16) for (key,) in connection.execute("select call_key from calls order by rowid")]
        rows = connection.execute(query).fetchall()
    cells: dict[str, list[set[int]]] = {}
    for path_in_tree, page, n_cells, _ in (row for row in rows if row[3] == "leaf"):
        cells[path_in_tree] = [{page} for _ in range(n_cells)]
    for path_in_tree, page, _, _ in (row for row in rows if row[3] == "overflow"):
        leaf, _, rest = path_in_tree.rpartition("/")
        cells[f"{leaf}/"][int(rest.partition("+")[0], 16)].add(page)
    in_order = [pages for path_in_tree in sorted(cells) for pages in cells[path_in_tree]]
    return dict(zip(numbers, in_order, strict=True))


def repaired(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[int, tuple[Any, ...]], str]:
    """Open a ledger, and return its content afterwards and the printed messages."""
    capsys.readouterr()
    Ledger(path.parent).close()
    return calls_in(path), capsys.readouterr().err


def hit(path: Path, seed: int, n_bytes: int, first: int = 0) -> set[int]:
    """Change bytes at random; the pages that were hit."""
    dice = random.Random(seed)
    offsets = sorted(dice.sample(range(first, path.stat().st_size), n_bytes))
    with path.open("r+b") as file:
        for path_in_tree in offsets:
            file.seek(path_in_tree)
            byte = file.read(1)[0]
            file.seek(path_in_tree)
            file.write(bytes([byte ^ dice.randrange(1, 256)]))
    return {path_in_tree // PAGE + 1 for path_in_tree in offsets}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_flipped_byte_makes_a_call_wrong_and_a_few_of_them_hide_no_other_call(
    seed: int, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "calls.sqlite"))
    first = 8 * PAGE  # where the tables begin: what stands below the root of a table is lost with it
    struck = hit(path, seed, [1, 30, 300, 300][seed % 4], first=first if seed % 4 < 3 else 0)
    before, pages = calls_in(whole), pages_of(whole)
    assert N_CALLS == len(pages)
    after, _ = repaired(path, capsys)
    ledger = Ledger(tmp_path)
    used = {number for number in after if ledger.history(f"{number:064x}").reply_for(f"cell-{number}")}
    ledger.close()
    assert {number: after[number] for number in used} == {number: before[number] for number in used}
    if seed % 4 < 3:
        assert used >= {number for number in pages if not pages[number] & struck}


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.9, 0.999])
def test_every_call_in_what_is_left_of_a_cut_file_is_recovered(
    share: float, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "calls.sqlite"))
    left = int(path.stat().st_size * share)
    with path.open("r+b") as file:
        file.truncate(left)
    whole_pages = set(range(1, left // PAGE + 1))
    after, printed = repaired(path, capsys)
    left_whole = {number for number, pages in pages_of(whole).items() if pages <= whole_pages}
    assert len(left_whole - after.keys()) <= 1  # the call at the cut
    assert after.items() <= calls_in(whole).items()
    assert f"{len(after)} calls were recovered" in printed


def killed_in_a_run(folder: Path, n_calls: int) -> tuple[Path, Path]:
    """The folder of a ledger with some calls, and a copy of it as a kill would have left it."""
    running, killed = folder / "running", folder / "killed"

    async def fill() -> None:
        ledger = Ledger(running)
        for number in range(n_calls):
            await ledger.record(entry(number))
        shutil.copytree(running, killed)
        ledger.close()

    asyncio.run(fill())
    return running, killed


@pytest.mark.parametrize("seed", range(3))
def test_damage_to_the_log_of_a_killed_run_is_told_and_what_came_before_it_is_kept(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, killed = killed_in_a_run(tmp_path, 60)
    path, log = killed / "calls.sqlite", killed / "calls.sqlite-wal"
    assert log.stat().st_size > 50 * PAGE
    hit(log, seed, 1 + seed, first=0 if seed else 40)
    if not seed:  # the header of the log, without which SQLite passes over all of it in silence
        hit(log, seed, 1, first=16)
    before = calls_in(running / "calls.sqlite")
    after, printed = repaired(path, capsys)
    assert "is damaged (its log" in printed
    assert after == {number: before[number] for number in range(len(after))}
    assert 1 == len(list(killed.glob("damaged-*-calls.sqlite-wal")))


def test_a_log_that_ends_in_a_cut_off_commit_is_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, killed = killed_in_a_run(tmp_path, 30)
    log = killed / "calls.sqlite-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 1000)
    after, printed = repaired(killed / "calls.sqlite", capsys)
    assert ("", []) == (printed, list(killed.glob("damaged-*")))
    assert len(after) >= 28


@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 1000, bytes(3 * PAGE)])
def test_a_file_that_is_empty_or_no_database_is_kept_aside_and_begun_anew(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(content)
    after, printed = repaired(path, capsys)
    (aside,) = tmp_path.glob("damaged-*")
    assert ({}, content, 1) == (after, aside.read_bytes(), len(printed.splitlines()))
    assert aside.name in printed


def test_open_batches_and_spent_failures_and_sums_outlive_damage(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "calls.sqlite"))
    destroy(path, root_of(path, INDEX))
    assert "damaged" in repaired(path, capsys)[1]
    ledger = Ledger(tmp_path)
    (open_,) = Submissions(ledger).open("an endpoint")
    assert ("batch-1", ["key"]) == (open_.batch_id, [call.call_key for call in open_.calls])
    assert 4 == ledger.history("a failed one").next_attempt
    assert [(N_CALLS,)] == ledger.rows("select sum(calls) from spend")
    ledger.close()


@pytest.mark.parametrize("after", ["the new file", "the old one is aside"])
def test_a_kill_in_the_middle_of_a_repair_loses_nothing(
    after: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "calls.sqlite"))
    destroy(path, root_of(path, INDEX))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    rename, name = Path.rename, "calls.sqlite" if after == "the new file" else "repaired-calls.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", lambda p, to: killed() if p.name == name else rename(p, to))
        with pytest.raises(KeyboardInterrupt):
            Ledger(tmp_path)
    assert spend_in(tmp_path) == spend_in(whole.parent)  # read as it was left
    Ledger(tmp_path).close()
    assert calls_in(path) == calls_in(whole)
    assert 1 == len(list(tmp_path.glob("damaged-*.sqlite")))
    assert not list(tmp_path.glob("repaired-*"))


def test_a_flipped_bit_inside_a_stored_reply_is_noticed_and_the_call_made_again(
    calling: Calling, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(HttpResponse("The result is 42."))
    path = filled(calling, server, 60)
    data = bytearray(path.read_bytes())
    data[data.index(b"The result is 42.") + 15] ^= 1
    path.write_bytes(data)
    calls = [call_to(server, f"question {n} " + "word " * 100) for n in range(60)]
    paid = len(server.book)
    assert {"The result is 42."} == {reply.text for reply in calling.at_once(*calls) if isinstance(reply, Reply)}
    assert len(server.book) == paid + 1
    (printed,) = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
    assert str(path) in printed
    calling.at_once(*calls)
    assert len(server.book) == paid + 1


def test_damage_that_comes_while_a_run_goes_on_is_one_line_and_the_next_run_repairs_it(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file too large to be looked through at each opening is looked through when reading it has failed."""
    path = Path(shutil.copy(whole, tmp_path / "calls.sqlite"))
    monkeypatch.setattr(files, "MOST_CHECKED_BYTES", 0)
    destroy(path, root_of(path, INDEX))
    ledger = Ledger(tmp_path)
    with pytest.raises(PipelineError, match=r"is damaged .* run again: it is repaired") as error:
        ledger.history(f"{7:064x}")
    assert 1 == len(str(error.value).splitlines())
    ledger.close()
    after, printed = repaired(path, capsys)
    assert f"{N_CALLS} calls were recovered" in printed
    assert after == calls_in(whole)


async def test_what_is_written_in_one_transaction_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    submissions = Submissions(ledger)

    def values() -> Any:
        yield "half", "an endpoint"
        raise ValueError("cut off in the middle")

    half: Statement = ("insert into submissions values (?, ?)", values())
    with pytest.raises(PipelineError, match="cut off"):
        await ledger.write(half)
    assert [] == submissions.open("an endpoint")
    with pytest.raises(PipelineError):  # nothing is written after a write that failed
        await submissions.begin("an endpoint", [])
    ledger.close()


def test_sums_that_are_lost_with_the_damage_are_those_of_the_saved_calls(calling: Calling, serve: Serve) -> None:
    filled(calling, serve(HttpResponse("word " * 100)))
    path = calling.folder / "calls.sqlite"
    destroy(path, root_of(path, "spend"))
    Ledger(calling.folder).close()
    assert 1 == len(list(calling.folder.glob("damaged-*.sqlite")))
    assert [(120, "unknown")] == [(row["calls"], row["purpose"]) for row in spend_in(calling.folder)]


def record_on(folder: Path, n_acknowledged: "Synchronized[int]") -> None:
    """Record calls without end, and tell how many of them are stored."""

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
    kept = {int(key, 16) for (key,) in stored(tmp_path, "call_key")}
    assert kept >= set(range(n_acknowledged.value))
    assert sum(row["calls"] for row in spend_in(tmp_path)) == len(kept)


def test_a_file_that_somebody_else_has_locked_is_not_taken_for_damaged(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(calling, serve(HttpResponse("word " * 100)))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named | {"timeout": 0.2}))
    holder = connect(path, isolation_level=None)
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin exclusive")
    try:
        with pytest.raises(PipelineError, match="lock"):
            calling(call_to("http://127.0.0.1:9/v1"))
        with pytest.raises(PipelineError, match="another program is using it; try again later"):
            spend_in(calling.folder)
    finally:
        holder.close()
    assert not list(calling.folder.glob("damaged-*"))


@pytest.mark.parametrize("path_in_tree", ["a file", "below a file"])
def test_a_folder_that_cannot_be_written_is_one_line(path_in_tree: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    folder = tmp_path / "taken" / "below" if path_in_tree == "below a file" else tmp_path / "taken"
    with pytest.raises(PipelineError, match="cannot be written") as caught:
        Ledger(folder)
    assert str(folder) in str(caught.value)


async def test_a_ledger_that_another_machine_writes_now_is_left_as_it_is(tmp_path: Path) -> None:
    def files() -> dict[str, bytes]:
        return {name: (tmp_path / name).read_bytes() for name in ("calls.sqlite", "calls.sqlite-wal")}

    lost: list[str] = []
    ledger = Ledger(tmp_path, lambda: next(iter(lost), None))
    await ledger.record(entry(0))
    before = files()
    lost.append("node7 took over")
    with pytest.raises(PipelineError, match="node7 took over"):
        ledger.refuse_if_broken()
    with pytest.raises(PipelineError, match="node7 took over"):
        await ledger.record(entry(1))
    ledger.close()
    assert files() == before
