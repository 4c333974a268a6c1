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
from functools import partial
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.calls.batches import Submissions, SubmittedCall
from tasks.llm.ledger import opening
from tasks.llm.ledger.entries import COLUMNS, Entry
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.rules.errors import PipelineError
from tests.faults.server import HttpResponse
from tests.kit import one_line, write_calls
from tests.tasks.llm.conftest import calls_to
from tests.tasks.llm.ledger.conftest import (
    PAGE_BYTES,
    database,
    destroy_page,
    entry,
    offset_of,
)

pytestmark = pytest.mark.usefixtures("hurried")

N_CALLS = 400
INDEX = "sqlite_autoindex_calls_1"
Calls = dict[str, tuple[Any, ...]]
"""The rows of calls by key."""


def long_entry(number: int) -> Entry:
    """A call with a unique reply; some replies are so long that they need pages of their own."""
    n_words = random.Random(number).choice([5, 100, 400, 3_000])
    reply = Reply(
        "ok",
        f"reply {number} " + "word " * n_words,
        prompt_tokens=number,
        cost_usd=number / 7,
        prices=Prices(1.0, None, 2.0, "list"),
    )
    return entry(number, reply, finished_at_s=1.7e9 + number)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """The folder of a closed ledger with hundreds of calls, an open batch, and failed attempts that
    have become rows.
    """
    folder = tmp_path_factory.mktemp("original")
    write_calls(
        folder,
        [long_entry(number) for number in range(N_CALLS)],
        [("a failed one", 3)],
    )

    async def submit():
        with closing(Ledger(folder)) as ledger:
            submissions = Submissions(ledger, "an endpoint")
            submission = await submissions.begin([SubmittedCall("key", "cell", "{}")])
            await submissions.record_submitted(submission, "batch-1")

    asyncio.run(submit())
    return folder


@pytest.fixture
def copy(original: Path, tmp_path) -> Path:
    """The folder of a copy of that ledger, to damage."""
    shutil.copy(original / "calls.sqlite", tmp_path)
    return tmp_path


def calls_in(folder: Path) -> Calls:
    query = f"select {', '.join(COLUMNS)} from calls"
    with database(folder) as connection:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        return {row[0]: row for row in connection.execute(query)}


def pages_by_call(folder: Path) -> dict[str, set[int]]:
    """The pages of each call, by SQLite's own count."""
    keys_query = "select call_key from calls order by rowid"
    query = "select path, pageno, ncell, pagetype from dbstat where name = 'calls' order by path"
    with database(folder) as connection:
        keys = [key for (key,) in connection.execute(keys_query)]
        rows = connection.execute(query).fetchall()
    cells = {}
    for path_in_tree, page, n_cells, page_type in rows:
        if page_type == "leaf":
            cells[path_in_tree] = [{page} for _ in range(n_cells)]
    for path_in_tree, page, _, page_type in rows:
        if page_type == "overflow":
            leaf, _, cell = path_in_tree.rpartition("/")
            cells[f"{leaf}/"][int(cell.partition("+")[0], 16)].add(page)
    pages_in_order = []
    for path_in_tree in sorted(cells):
        pages_in_order += cells[path_in_tree]
    return dict(zip(keys, pages_in_order, strict=True))


def repair(folder: Path, capsys) -> str:
    """Open a ledger, and return the printed messages."""
    capsys.readouterr()
    Ledger(folder).close()
    return capsys.readouterr().err


def change_bytes(
    path: Path,
    seed: int,
    n_bytes: int,
    start: int = 0,
) -> set[int]:
    """Change bytes at random, and return the changed pages."""
    dice = random.Random(seed)
    content = bytearray(path.read_bytes())
    pages = set()
    for offset in dice.sample(range(start, len(content)), n_bytes):
        content[offset] ^= dice.randrange(1, 256)
        pages.add(offset // PAGE_BYTES + 1)
    path.write_bytes(content)
    return pages


def used_calls(folder: Path) -> Calls:
    """The rows of the calls whose reply is used after the repair."""
    Ledger(folder).close()
    calls = calls_in(folder)
    with closing(Ledger(folder)) as ledger:
        for key in list(calls):
            if ledger.history(key).reply_for(key.replace("key", "cell")) is None:
                del calls[key]
    return calls


BEHIND_ROOTS = 8 * PAGE_BYTES
"""Without its root page a table is lost."""


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n_bytes"), [(0, 1), (1, 30), (2, 300)])
def test_flipped_bytes_make_no_call_wrong_and_hide_none(
    seed, n_bytes, original, copy
):
    damaged_pages = change_bytes(copy / "calls.sqlite", seed, n_bytes, BEHIND_ROOTS)

    calls = used_calls(copy)

    assert calls.items() <= calls_in(original).items()
    pages = pages_by_call(original)
    undamaged_keys = {key for key in pages if pages[key].isdisjoint(damaged_pages)}
    assert len(pages) == N_CALLS
    assert calls.keys() >= undamaged_keys


@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_every_whole_call_of_a_cut_file_is_recovered(share, original, copy, capsys):
    path = copy / "calls.sqlite"
    n_pages = int(path.stat().st_size * share) // PAGE_BYTES
    os.truncate(path, int(path.stat().st_size * share))

    printed = repair(copy, capsys)

    pages = pages_by_call(original)
    calls = calls_in(copy)
    readable_keys = {key for key in pages if max(pages[key]) <= n_pages}
    assert len(readable_keys - calls.keys()) <= 1, "the call at the cut may be lost"
    assert calls.items() <= calls_in(original).items()
    line = rf"; {len(calls)} of \d+ calls ever recorded were recovered"
    assert re.search(line, printed)


def killed_in_a_run(folder: Path, n_calls: int) -> Path:
    """The folder of a ledger with some calls in its log, in the state after a kill."""
    killed = folder / "killed"

    async def fill():
        with closing(Ledger(folder / "running")) as ledger:
            for number in range(n_calls):
                await ledger.record(long_entry(number))
            shutil.copytree(folder / "running", killed)

    asyncio.run(fill())
    return killed


def damage_header(log: Path):
    """Damage the header of a log: without it SQLite silently ignores the original log."""
    change_bytes(log, 0, 1, start=40)
    change_bytes(log, 0, 1, start=16)


LOG_DAMAGES = {
    "the header": damage_header,
    "3 bytes": partial(change_bytes, seed=2, n_bytes=3),
}


@pytest.mark.parametrize("damage", LOG_DAMAGES)
def test_damage_to_the_log_of_a_killed_run_spares_earlier_calls(damage, tmp_path):
    """SQLite ends the log at the first damaged page, as at a commit that was cut off."""
    killed = killed_in_a_run(tmp_path, 60)
    LOG_DAMAGES[damage](killed / "calls.sqlite-wal")

    Ledger(killed).close()

    calls = calls_in(killed)
    all_calls = calls_in(tmp_path / "running")
    assert calls == {key: all_calls[key] for key in list(all_calls)[: len(calls)]}


def test_a_log_that_ends_in_a_cut_off_commit_is_no_damage(tmp_path, capsys):
    killed = killed_in_a_run(tmp_path, 30)
    log = killed / "calls.sqlite-wal"
    os.truncate(log, log.stat().st_size - 1000)

    printed = repair(killed, capsys)

    assert printed == ""
    assert list(killed.glob("damaged-*")) == []
    assert len(calls_in(killed)) >= 28


@pytest.mark.parametrize(
    "content", [b"", b"no database at all\n" * 1000, bytes(3 * PAGE_BYTES)]
)
def test_what_is_no_database_is_set_aside_and_replaced(content, tmp_path, capsys):
    (tmp_path / "calls.sqlite").write_bytes(content)

    printed = repair(tmp_path, capsys)

    [damaged_file] = tmp_path.glob("damaged-*")
    sentence = f"; the damaged file is kept as {damaged_file.name}; calls that are"
    assert calls_in(tmp_path) == {}
    assert damaged_file.read_bytes() == content
    assert printed.count("\n") == 1
    assert sentence in printed
    assert printed.endswith("neither recovered nor in a table are made again\n")


@pytest.mark.parametrize("name", [INDEX, "spend"])
def test_open_batches_spent_failures_and_sums_outlive_damage(name, copy, capsys):
    destroy_page(copy / "calls.sqlite", offset_of(copy, name))

    printed = repair(copy, capsys)

    assert "damaged" in printed
    with closing(Ledger(copy)) as ledger:
        [submission] = Submissions(ledger, "an endpoint").open_submissions()
        assert ledger.history("a failed one").next_attempt == 4
    assert submission.batch_id == "batch-1"
    assert submission.calls == (SubmittedCall("key", "cell", "{}"),)
    [spend] = spend_in(copy)
    assert spend["calls"] == N_CALLS
    assert spend["purpose"] == "unknown"


@pytest.mark.parametrize("name", ["calls.sqlite", "repaired-calls.sqlite"])
def test_a_kill_during_a_repair_loses_nothing(name, original, copy, monkeypatch):
    """The kill is at the first step after the new file, or after the old one was set aside."""
    destroy_page(copy / "calls.sqlite", offset_of(copy, INDEX))
    rename = Path.rename

    def rename_or_die(path, new_path):
        if path.name == name:
            raise KeyboardInterrupt
        return rename(path, new_path)

    with monkeypatch.context() as patches:
        patches.setattr(Path, "rename", rename_or_die)
        with pytest.raises(KeyboardInterrupt):
            Ledger(copy)
    spend_after_kill = spend_in(copy)
    Ledger(copy).close()

    assert spend_after_kill == spend_in(original)
    assert calls_in(copy) == calls_in(original)
    assert len(list(copy.glob("damaged-*.sqlite"))) == 1
    assert not list(copy.glob("repaired-*"))


def test_a_call_whose_stored_reply_was_changed_is_made_again_once(
    calling,
    serve,
    capsys,
):
    server = serve(HttpResponse("The result is 42."))
    calls = calls_to(server, 60)
    calling.call_at_once(*calls)
    path = calling.folder / "calls.sqlite"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"The result is 42.", b"The result is 43.", 1))

    replies = [*calling.call_at_once(*calls), *calling.call_at_once(*calls)]

    assert {reply.text for reply in replies} == {"The result is 42."}
    assert len(server.book) == 61
    printed = capsys.readouterr().err
    assert printed.count(f"{path}: a stored reply is damaged") == 1


def test_damage_in_a_run_is_repaired_by_the_next(original, copy, monkeypatch, capsys):
    """A file that is too large to be checked at each opening is checked after a failed read."""
    monkeypatch.setattr(opening, "MOST_CHECKED_BYTES", 0)
    destroy_page(copy / "calls.sqlite", offset_of(copy, INDEX))

    with closing(Ledger(copy)) as ledger, pytest.raises(PipelineError) as error:
        ledger.history("key-7")
    printed = repair(copy, capsys)

    message = one_line("it is damaged; run again: it is repaired")
    assert re.match(message, str(error.value))
    assert f"{N_CALLS} of {N_CALLS} calls ever recorded were recovered" in printed
    assert calls_in(copy) == calls_in(original)


async def test_after_a_failed_transaction_nothing_of_it_and_nothing_else_is_written(
    tmp_path,
):
    def values():
        yield "half", "an endpoint"
        raise ValueError("cut off in the middle")

    statement = ("insert into submissions values (?, ?)", values())
    with closing(Ledger(tmp_path)) as ledger:
        submissions = Submissions(ledger, "an endpoint")

        with pytest.raises(PipelineError, match="cut off"):
            await ledger.write(statement)
        with pytest.raises(PipelineError, match="cut off"):
            await submissions.begin([])

        assert submissions.open_submissions() == []


def record_on(folder: Path, n_acknowledged: "Synchronized[int]"):
    """Record calls without end, and report how many are stored."""

    async def run():
        ledger = Ledger(folder)
        while True:
            await ledger.record(entry(n_acknowledged.value))
            n_acknowledged.value += 1

    asyncio.run(run())


@pytest.mark.slow
def test_a_killed_process_loses_no_call_that_was_reported_as_stored(tmp_path):
    spawning = get_context("spawn")
    n_acknowledged = spawning.Value("i", 0)
    process = spawning.Process(target=record_on, args=(tmp_path, n_acknowledged))
    process.start()
    while n_acknowledged.value < 150:
        assert process.is_alive()
        time.sleep(0.001)

    process.kill()
    process.join()

    calls = calls_in(tmp_path)
    assert calls.keys() >= {f"key-{number}" for number in range(n_acknowledged.value)}
    assert sum(row["calls"] for row in spend_in(tmp_path)) == len(calls)


def test_a_file_that_another_program_has_locked_is_not_taken_for_damaged(
    copy,
    monkeypatch,
):
    connect = sqlite3.connect

    def connect_briefly(*arguments, **options):
        options["timeout"] = 0.2
        return connect(*arguments, **options)

    with closing(connect(copy / "calls.sqlite", isolation_level=None)) as holder:
        holder.execute("pragma locking_mode = exclusive")
        holder.execute("begin exclusive")
        monkeypatch.setattr(sqlite3, "connect", connect_briefly)

        with pytest.raises(PipelineError, match="lock"):
            Ledger(copy)
        with pytest.raises(PipelineError, match="that no other program uses it"):
            spend_in(copy)

    assert not list(copy.glob("damaged-*"))


@pytest.mark.parametrize("folder", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_written_is_one_line(folder, tmp_path):
    (tmp_path / "taken").write_text("x")

    with pytest.raises(
        PipelineError, match=rf"{tmp_path / folder}.*cannot be written"
    ):
        Ledger(tmp_path / folder)


async def test_a_ledger_that_another_machine_writes_now_is_left_unchanged(tmp_path):
    reasons = [None]
    ledger = Ledger(tmp_path, lambda: reasons[-1])
    await ledger.record(entry(0))
    files = [tmp_path / "calls.sqlite", tmp_path / "calls.sqlite-wal"]
    contents = [file.read_bytes() for file in files]
    reasons.append("node7 took over")

    with pytest.raises(PipelineError, match="node7 took over"):
        ledger.refuse_if_broken()
    with pytest.raises(PipelineError, match="node7 took over"):
        await ledger.record(entry(1))
    ledger.close()

    assert [file.read_bytes() for file in files] == contents
