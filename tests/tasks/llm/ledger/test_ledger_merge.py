"""Warehouses of version 1 had a ledger file for each process: they are merged into one, and no call is made again."""

import contextlib
import fcntl
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger import files, merge
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.ledger.schema import new_file
from tasks.llm.ledger.spend import spend_in
from tasks.llm.ledger.submissions import Submissions
from tasks.rules.errors import PipelineError
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to, failed

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Behaviour | Answer], FaultServer]
VERSION_1 = """
    create table calls (
        call_key, attempt, cell, run_id, finished_at_s, model, endpoint, parameters, status, is_final, text,
        finish_reason, served_model, served_fingerprint, prompt_tokens, cached_tokens, completion_tokens,
        reasoning_tokens, cost_usd, latency_s, error, input_usd_per_mtok, cached_usd_per_mtok, output_usd_per_mtok,
        price_table, checksum, primary key (call_key, attempt)
    );
    create table spent (call_key text primary key, attempt integer not null);
    create table spend (
        run_id, day, purpose, called_model, calls, failed_calls, unpriced_calls, prompt_tokens, cached_tokens,
        completion_tokens, cost_usd, primary key (run_id, day, purpose, called_model)
    );
    create table submissions (submission text primary key, lane text);
    create table submitted_calls (
        submission text, call_key text, cell text, parameters text, primary key (submission, call_key)
    );
    create table submission_states (submission text, state text, batch_id text, at_s real);
    pragma journal_mode = wal;
    pragma user_version = 2;
"""
"""A ledger file as the last program with several of them made it."""
BEFORE_VERSIONS = """
    drop table spend; drop table submissions; drop table submitted_calls; drop table submission_states;
    alter table calls drop column checksum;
    pragma user_version = 0;
"""
"""What a file from before there were versions lacks."""
TABLES = ("spent", "submissions", "submitted_calls", "submission_states")


def old_file(folder: Path, number: int) -> sqlite3.Connection:
    """A file of version 1, with the lock that its process left behind."""
    folder.mkdir(exist_ok=True)
    (folder / f"calls-{number}.lock").touch()
    connection = sqlite3.connect(folder / f"calls-{number}.sqlite", isolation_level=None)
    connection.executescript(VERSION_1)
    return connection


def as_in_version_1(folder: Path, n_files: int) -> None:
    """Spread a closed ledger over files of version 1: a part of the calls each, the rest in the last one."""
    ledger = folder / "calls.sqlite"
    for number in range(n_files):
        with closing(old_file(folder, number)) as old:
            old.execute("attach ? as new", (str(ledger),))
            old.execute("insert into calls select * from new.calls where rowid % ? = ?", (n_files, number))
            old.execute("""
                insert into spend
                select run_id, date(finished_at_s, 'unixepoch'), 'judge', model, count(*), sum(status != 'ok'),
                    sum(cost_usd is null), total(prompt_tokens), total(cached_tokens), total(completion_tokens),
                    total(cost_usd)
                from calls group by 1, 2, 3, 4
            """)
            for name in TABLES if number == n_files - 1 else ():
                old.execute(f"insert into {name} select * from new.{name}")
    for path in (ledger, folder / "calls.lock", folder / "call-locks.lock"):
        path.unlink()
    (folder / "claims.lock").touch()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def n_spent_calls(folder: Path) -> int:
    return sum(row["calls"] for row in spend_in(folder))


@pytest.fixture
def world(calling: Calling, serve: Serve) -> Any:
    """Twenty answered calls, a refused one whose row is stored, and an open batch, in three files of version 1."""
    server = serve(
        lambda request, _n: Answer(None, refusal="no") if "refuse" in str(request["messages"]) else Answer("x" * 500)
    )
    calls = [call_to(server, f"question {number}") for number in range(20)]

    async def work(gateway: Any, ledger: Ledger) -> None:
        for call in calls:
            await gateway.complete(call)
        refused = await gateway.complete(call_to(server, "refuse this"))
        ledger.mark_used(refused.paid)
        submissions = Submissions(ledger)
        await submissions.submitted(await submissions.begin("an endpoint", []), "batch-1")

    calling.inside(work)
    as_in_version_1(calling.folder, 3)
    return calling, server, calls


def test_no_call_is_made_again_and_all_that_was_known_is_in_one_file(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    calling, server, calls = world
    before = spend_in(calling.folder)
    assert n_spent_calls(calling.folder) == 21
    for _ in range(2):
        assert [reply.text for reply in calling.together(*calls)] == ["x" * 500] * 20
        assert (len(server.book), spend_in(calling.folder)) == (21, before)
        assert names(calling.folder) == ["call-locks.lock", "calls.lock", "calls.sqlite"]
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("calls.sqlite: 21 calls of 3 ledger files were merged into this one")

    async def look(_: Any, ledger: Ledger) -> None:
        assert [each.batch_id for each in Submissions(ledger).open("an endpoint")] == ["batch-1"]

    calling.inside(look)
    server.behaviour = lambda _request, _number: Answer("now")
    assert calling(call_to(server, "refuse this")).text == "now"  # its failed row is stored


def test_a_file_from_before_there_were_versions_is_merged_too(world: Any) -> None:
    calling, server, calls = world
    with closing(sqlite3.connect(calling.folder / "calls-1.sqlite", isolation_level=None)) as old:
        old.executescript(BEFORE_VERSIONS)
    assert {reply.text for reply in calling.together(*calls)} == {"x" * 500}
    assert (len(server.book), n_spent_calls(calling.folder)) == (21, 21)


def open_and_be_killed(folder: Path, instant: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Open the ledger, and stop before so many changes to the names of files; False where there are fewer."""
    left = [instant]

    def before(work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return work(*arguments, **options)

        return counted

    with monkeypatch.context() as patched:
        for name in ("rename", "unlink", "replace"):
            patched.setattr(Path, name, before(getattr(Path, name)))
        patched.setattr(merge, "new_file", before(merge.new_file))
        with contextlib.suppress(KeyboardInterrupt):
            Ledger(folder).close()
    return left[0] < 0


def left_over(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith(("merged-", "merging-", "calls-"))]


INSTANTS = range(2, 45, 3)
"""The last one comes when the ledger is open."""


@pytest.mark.slow
@pytest.mark.parametrize("instant", INSTANTS)
def test_a_kill_at_any_instant_of_merging_loses_and_doubles_nothing(
    instant: int, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, server, calls = world
    was_killed = open_and_be_killed(calling.folder, instant, monkeypatch)
    assert was_killed == (instant != INSTANTS[-1])
    n_calls = n_spent_calls(calling.folder)  # read as it was left
    assert {reply.text for reply in calling.together(*calls)} == {"x" * 500}
    assert (len(server.book), n_calls, n_spent_calls(calling.folder)) == (21, 21, 21)
    assert left_over(calling.folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("instant", INSTANTS)
def test_what_an_older_program_writes_after_a_killed_merge_is_merged_too(
    instant: int, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, server, calls = world
    open_and_be_killed(calling.folder, instant, monkeypatch)
    later = Calling(calling.folder.parent / "later")
    later_calls = [call_to(server, "by the older program"), call_to(server, "by its other process")]
    later.together(*later_calls)
    as_in_version_1(later.folder, 2)
    for number in range(2):
        written_by_version_1(calling.folder, number, later.folder / f"calls-{number}.sqlite")
    assert n_spent_calls(calling.folder) == 23  # read as it was left
    assert {reply.text for reply in calling.together(*calls, *later_calls)} == {"x" * 500}
    assert (len(server.book), n_spent_calls(calling.folder)) == (23, 23)
    assert left_over(calling.folder) == []


def written_by_version_1(folder: Path, number: int, source: Path) -> None:
    """Write the calls of a source as a process of version 1 does: to the file of its number."""
    is_new = not (folder / f"calls-{number}.sqlite").exists()
    with closing(old_file(folder, number) if is_new else sqlite3.connect(folder / f"calls-{number}.sqlite")) as old:
        old.execute("attach ? as source", (str(source),))
        with old:
            old.execute("insert into calls select * from source.calls")
            old.execute(
                "insert into spend select * from source.spend where true "
                "on conflict do update set calls = calls + excluded.calls"
            )


@pytest.mark.parametrize("instant", [0, 20, 32])
def test_a_merge_does_not_go_on_either_while_a_process_of_version_1_writes(
    instant: int, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, server, calls = world
    assert open_and_be_killed(calling.folder, instant, monkeypatch)
    before = names(calling.folder)
    with (calling.folder / "calls-1.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match=r"calls-1\.sqlite: a run of an older version is using it"):
            calling(calls[0])
        assert names(calling.folder) == before
    assert calling(calls[0]).text == "x" * 500
    assert len(server.book) == 21


def test_no_process_of_version_1_starts_while_its_files_are_merged(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calling, _, _ = world
    replace = Path.replace
    free: list[str] = []

    def looked_at(path: Path, target: Path) -> Path:
        for lock_path in sorted(calling.folder.glob("calls-*.lock")):
            with lock_path.open("a+") as lock, contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free.append(lock_path.name)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", looked_at)
    assert len(list(calling.folder.glob("calls-*.lock"))) == 3
    Ledger(calling.folder).close()
    assert (free, left_over(calling.folder)) == ([], [])


def test_the_file_of_a_process_of_version_1_that_starts_during_a_merge_is_left_to_it(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, _, _ = world
    checked = files._checked_whole
    started: list[Any] = []

    def start_and_check(path: Path) -> None:
        if not started:
            started.extend([(calling.folder / "calls-3.lock").open("a+"), old_file(calling.folder, 3)])
            fcntl.flock(started[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        checked(path)

    monkeypatch.setattr(files, "_checked_whole", start_and_check)
    with pytest.raises(PipelineError, match=r"calls-3\.sqlite: a run of an older version is using it"):
        Ledger(calling.folder)
    with started[0], closing(started[1]) as at_work:
        at_work.execute("insert into spend values ('late', '2026-11-01', 'judge', 'm', 1, 0, 0, 1, 0, 1, 4.0)")
    Ledger(calling.folder).close()
    assert [row["cost_usd"] for row in spend_in(calling.folder) if row["run_id"] == "late"] == [4.0]
    assert n_spent_calls(calling.folder) == 22


def test_a_repair_that_was_cut_short_is_ended_before_files_of_version_1_are_merged(world: Any) -> None:
    calling, server, calls = world
    calling(calls[0])
    (calling.folder / "calls.sqlite").rename(calling.folder / "repaired-calls.sqlite")
    later = Calling(calling.folder.parent / "later")
    later(call_to(server, "by the older program"))
    as_in_version_1(later.folder, 1)
    (later.folder / "calls-0.sqlite").rename(calling.folder / "calls-0.sqlite")
    assert n_spent_calls(calling.folder) == 22  # read as it was left
    calling.together(*calls, call_to(server, "by the older program"))
    assert (len(server.book), n_spent_calls(calling.folder)) == (22, 22)


def test_a_damaged_file_is_set_aside_and_what_is_whole_in_it_merged(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    calling, server, calls = world
    with (calling.folder / "calls-1.sqlite").open("r+b") as file:
        file.write(b"no database at all")
    assert {reply.text for reply in calling.together(*calls)} == {"x" * 500}
    assert len(server.book) == 21
    damaged, merged = capsys.readouterr().err.splitlines()
    assert "calls-1.sqlite: is damaged" in damaged
    assert "7 calls were recovered" in damaged
    assert "21 calls of 3 ledger files" in merged
    (aside,) = calling.folder.glob("damaged-*")
    assert aside.name in damaged


def test_files_of_version_1_that_come_later_are_merged_into_the_ledger(world: Any) -> None:
    """As when the older program was started once more."""
    calling, server, calls = world
    calling(calls[0])
    calling.inside(lambda gateway, _ledger: gateway.complete(call_to(server, "a later one")))
    later = calling.folder.parent / "later"
    other = Calling(later)
    other(call_to(server, "by the older program"))
    as_in_version_1(later, 1)
    (later / "calls-0.sqlite").rename(calling.folder / "calls-0.sqlite")
    calling.together(*calls, call_to(server, "a later one"), call_to(server, "by the older program"))
    assert (len(server.book), n_spent_calls(calling.folder)) == (23, 23)


def test_nothing_is_merged_while_a_process_of_version_1_writes(world: Any) -> None:
    calling, server, calls = world
    before = names(calling.folder)
    with (calling.folder / "calls-1.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match=r"calls-1\.sqlite: a run of an older version is using it") as caught:
            calling(calls[0])
        assert len(str(caught.value).splitlines()) == 1
        assert set(names(calling.folder)) == {*before, "calls.lock"}
    assert calling(calls[0]).text == "x" * 500
    assert len(server.book) == 21


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_attempts_with_the_same_number_the_one_that_decided_stands(
    order: Sequence[int], calling: Calling, serve: Serve
) -> None:
    server = serve(failed(503))
    calling.attempts = 1
    call = call_to(server)
    others = [Calling(calling.folder.parent / f"other-{number}", attempts=1) for number in range(2)]
    others[0](call)
    server.behaviour = lambda _request, _number: Answer("decided")
    others[1](call)
    calling.folder.mkdir()
    for number, place in enumerate(order):
        as_in_version_1(others[place].folder, 1)
        (others[place].folder / "calls-0.sqlite").rename(calling.folder / f"calls-{number}.sqlite")
    assert (calling(call).text, len(server.book), n_spent_calls(calling.folder)) == ("decided", 2, 2)


@pytest.mark.parametrize("instant", [0, 20])
def test_a_process_that_waited_for_one_that_was_killed_merges_the_files_itself(
    instant: int, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, _, calls = world
    open_and_be_killed(calling.folder, instant, monkeypatch)
    with (calling.folder / "calls.lock").open("a+") as held, ThreadPoolExecutor(1) as pool:
        fcntl.flock(held, fcntl.LOCK_EX)
        replies = pool.submit(lambda: calling.together(*calls))
        time.sleep(0.3)  # so that it waits; were it slower, the test would show less and still hold
        fcntl.flock(held, fcntl.LOCK_UN)
        assert [reply.text for reply in replies.result()] == ["x" * 500] * 20

    assert n_spent_calls(calling.folder) == 21
    assert left_over(calling.folder) == []


@pytest.mark.parametrize("n_files_read", range(3))
@pytest.mark.parametrize("has_ledger", [False, True])
def test_spend_is_exact_while_another_process_merges(
    n_files_read: int, has_ledger: bool, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling, server, _ = world
    if has_ledger:
        later = Calling(calling.folder.parent / "later")
        later(call_to(server, "a later one"))
        (later.folder / "calls.sqlite").rename(calling.folder / "calls.sqlite")
    before = spend_in(calling.folder)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    left = [n_files_read]

    def connected(*given: Any, **options: Any) -> sqlite3.Connection:
        left[0] -= 1
        if left[0] == -1:
            Ledger(calling.folder).close()
        return connect(*given, **options)

    monkeypatch.setattr(sqlite3, "connect", connected)
    assert spend_in(calling.folder) == before
    assert names(calling.folder) == ["call-locks.lock", "calls.lock", "calls.sqlite"]


def test_a_new_file_whose_log_cannot_be_written_into_it_takes_no_place(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"

    def fill_while_another_reads() -> None:
        with ExitStack() as readers, new_file(path) as connection:
            connection.execute("insert into spent values ('a call', 1)")
            connection.execute("pragma busy_timeout = 0")
            new = sqlite3.connect(tmp_path / "new-calls.sqlite", isolation_level=None)
            reader = readers.enter_context(closing(new))
            reader.execute("begin")
            reader.execute("select * from spent").fetchall()

    with pytest.raises(sqlite3.OperationalError):
        fill_while_another_reads()
    assert not path.exists()
