"""Backup and restore: real files, a writer that goes on, damage, and kills."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.maintain.backup import backup, restore
from tasks.rules.errors import UsageError
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, response, rows_in, sampled
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with pytest.MonkeyPatch.context() as patched, FaultServer() as running:
        patched.setenv("OPENAI_API_KEY", "none")
        yield running


@pytest.fixture(scope="module")
def made(server: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A warehouse with responses, verdicts and a ledger."""
    at = {"api_base": server.api_base, "max_tokens": 1000}
    job = job_on(
        "sample", tmp_path_factory.mktemp("made") / "warehouse", models=[{"name": "hosted_vllm/a", "label": "a", **at}],
        judges=[{"name": "openai/judge", "label": "judge", **at}],
    )  # fmt: skip
    sampled(prepared(job))
    judged(job)
    return job


@pytest.fixture
def job(made: Job, tmp_path: Path) -> Job:
    copy = Path(shutil.copytree(made.warehouse, tmp_path / "warehouse"))
    return made.model_copy(update={"warehouse": copy})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def into(job: Job, folder: Path) -> Job:
    """The same job on another warehouse."""
    return job.model_copy(update={"warehouse": folder})


def content(job: Job) -> list[list[dict[str, Any]]]:
    tables = ("responses", "verdicts", "criteria", "split_members")
    return [rows_in(job, f"from {table} order by all") for table in tables]


def add_part(job: Job, name: str) -> None:
    warehouse = Warehouse(job.warehouse)
    warehouse.write("responses", [response(name)])
    warehouse.publish()


def files_in(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def test_a_restored_warehouse_has_every_row_and_a_run_on_it_makes_no_call(
    job: Job, folder: Path, tmp_path: Path, server: FaultServer
) -> None:
    backup(job, folder)
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)
    before = len(server.book)
    sampled(restored)
    judged(restored)

    assert content(job) == content(restored)
    assert before == len(server.book)


def test_replies_that_were_only_in_the_ledger_are_not_paid_again(
    made: Job, folder: Path, tmp_path: Path, server: FaultServer
) -> None:
    job = into(made, tmp_path / "killed")
    shutil.copytree(made.warehouse, job.warehouse)
    # As after a kill: replies are in the ledger and not yet in a part.
    for table in ("responses", "verdicts"):
        shutil.rmtree(job.warehouse / "parts" / table)
    backup(job, folder)
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)
    before = len(server.book)
    sampled(restored)
    judged(restored)

    assert before == len(server.book)
    query = "select count(*) as n from verdicts"
    assert rows_in(made, query) == rows_in(restored, query)


def test_a_ledger_whose_repair_was_cut_short_is_backed_up(
    made: Job, job: Job, folder: Path, tmp_path: Path, server: FaultServer
) -> None:
    ledger = job.warehouse / "ledger" / "calls.sqlite"
    ledger.rename(ledger.with_name("repaired-calls.sqlite"))
    shutil.rmtree(job.warehouse / "parts" / "verdicts")
    backup(job, folder)
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)
    before = len(server.book)
    judged(restored)

    assert before == len(server.book)
    assert len(content(made)[1]) == len(content(restored)[1])


def test_a_second_backup_copies_only_what_is_new(job: Job, folder: Path) -> None:
    for path in (job.warehouse / "ledger").iterdir():
        os.utime(path, (time.time() - 60,) * 2)
    backup(job, folder)
    before = files_in(folder)
    add_part(job, "new")
    report = backup(job, folder)
    after = files_in(folder)

    new = set(after) - set(before)
    assert 1 == len([name for name in new if name.endswith(".parquet")])
    assert not [name for name in new if "ledger" in name]
    assert report.rows == len(new)
    unchanged = set(before) & set(after) - {"backup.json", "backup.lock"}
    assert {name: before[name] for name in unchanged} == {name: after[name] for name in unchanged}


def test_copies_that_are_needed_no_more_are_removed_when_the_new_backup_is_whole(job: Job, folder: Path) -> None:
    backup(job, folder)
    old = [name for name in files_in(folder) if "ledger" in name]
    with sqlite3.connect(next((job.warehouse / "ledger").glob("calls.sqlite"))) as ledger:
        ledger.execute("create table anything (x)")
    backup(job, folder)
    ledgers = [name for name in files_in(folder) if "ledger" in name]

    assert len(old) == len(ledgers)
    assert set(old) != set(ledgers)


def test_merged_files_are_backed_up_in_place_of_those_they_replaced(small: Job, folder: Path, tmp_path: Path) -> None:
    add_part(small, "b")
    backup(small, folder)
    Warehouse(small.warehouse).compact()
    backup(small, folder)
    restored = into(small, tmp_path / "restored")
    restore(restored, folder)

    assert (["a", "b"], 0) == held(restored)
    copies = list((folder / "files" / "parts").rglob("*.parquet"))
    assert 1 == len(copies) == Warehouse(restored.warehouse).n_parts()


def test_a_backup_while_a_run_writes_is_of_one_moment(job: Job, folder: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        warehouse = Warehouse(job.warehouse)
        path = job.warehouse / "ledger" / "calls.sqlite"
        with sqlite3.connect(path, isolation_level=None) as ledger:
            ledger.execute("pragma journal_mode = wal")
            ledger.execute("create table pairs (a, b)")
            while not stop.is_set():
                name = f"w{len(written)}"
                # Both halves in one transaction, far apart in the file.
                ledger.execute("begin")
                ledger.execute("insert into pairs values (?, ?)", (name, "x" * 3000))
                ledger.execute("insert into pairs values (?, ?)", (name, "y" * 3000))
                ledger.execute("commit")
                warehouse.write("responses", [response(name)])
                written.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 5:
            time.sleep(0.01)
        n_before = len(written)
        backup(job, folder)
        n_after = len(written)
    finally:
        stop.set()
        writer.join()
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)

    assert n_before < n_after
    tasks = {row["task_id"] for row in rows_in(restored, "select task_id from responses")}
    with sqlite3.connect(restored.warehouse / "ledger" / "calls.sqlite") as ledger:
        assert [("ok",)] == ledger.execute("pragma integrity_check").fetchall()
        halves = dict(ledger.execute("select a, count(*) from pairs group by a").fetchall())
    assert {2} == set(halves.values())
    # Whatever was written before the backup began is in it.
    assert set(written[:n_before]) <= tasks & set(halves)
    # What is in the copy of the ledger and was stored when the parts were listed is there too: none is lost between.
    assert set(written[: len(halves) - 1]) <= tasks


# damage and refusals


def test_a_warehouse_that_holds_something_is_not_restored_into(job: Job, folder: Path) -> None:
    backup(job, folder)
    before = files_in(job.warehouse)

    with pytest.raises(UsageError, match="is not empty"):
        restore(job, folder)
    assert before.keys() == files_in(job.warehouse).keys()


def test_hidden_files_and_what_every_disk_has_hinder_neither_a_backup_nor_its_restoring(
    job: Job, tmp_path: Path, folder: Path
) -> None:
    restored = into(job, tmp_path / "restored")
    for root in (folder, restored.warehouse):
        (root / "lost+found").mkdir(parents=True)
        (root / ".directory").touch()
    backup(job, folder)
    restore(restored, folder)

    assert content(job) == content(restored)


def test_a_folder_that_holds_something_else_is_not_backed_up_into(job: Job, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")

    with pytest.raises(UsageError, match="holds files that are not a backup"):
        backup(job, tmp_path / "mine")
    assert ["notes.txt"] == [path.name for path in (tmp_path / "mine").iterdir()]


def test_a_backup_does_not_lie_in_the_warehouse_itself(job: Job) -> None:
    with pytest.raises(UsageError, match="is inside the warehouse"):
        backup(job, job.warehouse / "backup")


# kills

KILLING = """
import json, os, shutil, signal, sys
from pathlib import Path
from tasks.maintain.backup import backup, restore
from tests.kit import job_on

what, warehouse, folder, places = sys.argv[1], *map(Path, sys.argv[2:])

def killed_at(step, place):
    # Dies at the n-th change of a name there: just before a file, or the record, is put in place or goes.
    where = "backup" if what == "backup" else "warehouse"
    left = step

    def dies(event, arguments):
        nonlocal left
        if event in {"os.rename", "os.remove", "os.rmdir"} and str(arguments[0]).startswith(str(place / where)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(dies)
    (backup if what == "backup" else restore)(job_on("sample", place / "warehouse"), place / "backup")

for step in range(1, 60):
    place = places / str(step)
    shutil.copytree(folder, place / "backup")
    if what == "backup":
        shutil.copytree(warehouse, place / "warehouse")
    if not (child := os.fork()):
        killed_at(step, place)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([str(place), code]))
    if code != -signal.SIGKILL:
        break
"""


def killed_at_every_step(what: str, warehouse: Path, folder: Path, places: Path) -> list[Path]:
    """Do it once for every change of a name that it makes, on copies, killed at that; the last one comes to its end."""
    done = subprocess.run(
        [sys.executable, "-c", KILLING, what, str(warehouse), str(folder), str(places)],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True,
    )  # fmt: skip
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [-signal.SIGKILL] * (len(outcomes) - 1) + [0] == [code for _, code in outcomes], done.stderr
    return [Path(place) for place, _ in outcomes]


@pytest.fixture
def small(tmp_path: Path) -> Job:
    """A warehouse of few files, so that it can be killed at each of them."""
    job = job_on("sample", tmp_path / "small")
    add_part(job, "a")
    (job.warehouse / "ledger").mkdir()
    with sqlite3.connect(job.warehouse / "ledger" / "calls.sqlite") as ledger:
        ledger.execute("create table calls (x)")
    return job


def held(job: Job) -> tuple[list[str], int]:
    """The responses in the parts, and the number of calls in the ledger."""
    with sqlite3.connect(job.warehouse / "ledger" / "calls.sqlite") as ledger:
        (n_calls,) = ledger.execute("select count(*) from calls").fetchone()
    return [row["task_id"] for row in rows_in(job, "select task_id from responses order by all")], n_calls


@pytest.mark.slow
@pytest.mark.long
def test_a_kill_of_a_backup_leaves_the_last_whole_one(small: Job, folder: Path, tmp_path: Path) -> None:
    backup(small, folder)
    with sqlite3.connect(small.warehouse / "ledger" / "calls.sqlite") as ledger:
        ledger.execute("insert into calls values (1)")
    add_part(small, "b")
    found = []
    for place in killed_at_every_step("backup", small.warehouse, folder, tmp_path / "places"):
        restored = into(small, place / "restored")
        restore(restored, place / "backup")
        found.append(held(restored))

    whole = [(["a"], 0), (["a", "b"], 1)]
    assert len(found) > 4
    assert found == [state for state in whole for _ in range(found.count(state))]
    assert found[-1] == whole[-1]


@pytest.mark.slow
@pytest.mark.long
def test_a_kill_of_a_restore_is_made_good_by_the_same_command(small: Job, folder: Path, tmp_path: Path) -> None:
    backup(small, folder)
    places = killed_at_every_step("restore", small.warehouse, folder, tmp_path / "places")
    for place in places[:-1]:
        restored = into(small, place / "warehouse")
        is_staged = (restored.warehouse / ".restoring" / "backup.json").exists()
        if is_staged or not (restored.warehouse / "parts").exists():
            restore(restored, place / "backup")
        assert held(small) == held(restored)

    assert len(places) > 4
