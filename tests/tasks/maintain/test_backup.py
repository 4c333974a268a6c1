"""Backup and restore: real files, a writer that continues meanwhile, damage, and kills."""

import shutil
import sqlite3
import threading
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest

from tasks.bundles.stores import Folder
from tasks.config.job import Job
from tasks.maintain.backup import backup, restore
from tasks.rules.errors import PipelineError, UsageError
from tests.faults.steps import killed_at_every_step
from tests.kit import (
    Row,
    file_times,
    job_on,
    judged,
    response,
    rows_in,
    sampled,
    until,
)
from tests.tasks.bundles.memory import Cut
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "backup"


def into(job: Job, folder: Path) -> Job:
    """The same job on another warehouse."""
    return job.model_copy(update={"warehouse": folder})


def ledger_of(job: Job) -> Path:
    return job.warehouse / "ledger" / "calls.sqlite"


def content(job: Job) -> list[list[Row]]:
    tables = ("responses", "verdicts", "criteria", "split_members")
    return [rows_in(job, f"from {table} order by all") for table in tables]


def add_part(job: Job, name: str):
    warehouse = Warehouse(job.warehouse)
    warehouse.write("responses", [response(name)])
    warehouse.publish()


@pytest.mark.parametrize("killed", ["no", "before a part", "in a repair"])
def test_a_restored_warehouse_has_every_row_that_was_paid_and_a_run_on_it_makes_no_call(
    killed,
    shared,
    job,
    folder,
    tmp_path,
    provider,
):
    if killed != "no":
        # As if replies were in the ledger, but not in a part yet.
        shutil.rmtree(job.warehouse / "parts" / "responses")
        shutil.rmtree(job.warehouse / "parts" / "verdicts")
    if killed == "in a repair":
        ledger_of(job).rename(ledger_of(job).with_name("repaired-calls.sqlite"))
    backup(job, folder)
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)
    n_calls = len(provider.book)
    sampled(restored)
    judged(restored)

    assert len(provider.book) == n_calls
    assert list(map(len, content(restored))) == list(map(len, content(shared)))
    if killed == "no":
        assert content(restored) == content(job)


def ledger_copy(names: Iterable[str]) -> str:
    """The name of the only copy of the ledger."""
    [name] = (name for name in names if "ledger" in name)
    return name


def test_a_second_backup_copies_only_what_is_new_and_removes_what_is_needed_no_more(
    job, folder
):
    backup(job, folder)
    files_before = file_times(folder)
    add_part(job, "new")
    report = backup(job, folder)
    files_after = file_times(folder)

    new_files = set(files_after) - set(files_before)
    assert sum(name.endswith(".parquet") for name in new_files) == 1
    assert not [name for name in new_files if "ledger" in name]
    assert report.rows == len(new_files)
    unchanged = set(files_before) & set(files_after) - {"backup.json", "backup.lock"}
    assert {name: files_before[name] for name in unchanged} == {
        name: files_after[name] for name in unchanged
    }

    with sqlite3.connect(ledger_of(job)) as ledger:
        ledger.execute("create table anything (x)")
    backup(job, folder)
    assert ledger_copy(file_times(folder)) != ledger_copy(files_after)


def test_merged_files_are_backed_up_in_place_of_those_they_replaced(
    small,
    folder,
    tmp_path,
):
    add_part(small, "b")
    backup(small, folder)
    Warehouse(small.warehouse).compact()
    backup(small, folder)
    restored = into(small, tmp_path / "restored")
    restore(restored, folder)

    copies = list((folder / "files" / "parts").rglob("*.parquet"))
    assert held(restored) == (["a", "b"], 0)
    assert len(copies) == 1
    assert len(Warehouse(restored.warehouse).part_sizes()) == 1


def test_a_backup_while_a_run_writes_is_of_one_moment(
    job,
    folder,
    tmp_path,
    monkeypatch,
):
    stop = threading.Event()
    written = []
    module = import_module("tasks.maintain.backup")
    copy_ledger = module.copy_ledger

    def copy_between_writes(source, target):
        copy_ledger(source, target)
        n_written = len(written)
        until(lambda: len(written) > n_written)

    monkeypatch.setattr(module, "copy_ledger", copy_between_writes)

    def write():
        warehouse = Warehouse(job.warehouse)
        with sqlite3.connect(ledger_of(job), isolation_level=None) as ledger:
            ledger.execute("pragma journal_mode = wal")
            ledger.execute("create table pairs (a, b)")
            while not stop.is_set():
                name = f"w{len(written)}"
                # both halves are in one transaction, but far apart in the file
                ledger.execute("begin")
                ledger.executemany(
                    "insert into pairs values (?, ?)",
                    [(name, half * 3000) for half in "xy"],
                )
                ledger.execute("commit")
                warehouse.write("responses", [response(name)])
                written.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: len(written) >= 5)
        n_before = len(written)
        backup(job, folder)
    finally:
        stop.set()
        writer.join()
    restored = into(job, tmp_path / "restored")
    restore(restored, folder)

    tasks = {row["task_id"] for row in rows_in(restored, "from responses")}
    with sqlite3.connect(ledger_of(restored)) as ledger:
        assert ledger.execute("pragma integrity_check").fetchall() == [("ok",)]
        halves = dict(ledger.execute("select a, count(*) from pairs group by a"))
    assert set(halves.values()) == {2}
    # The backup has everything that was written before it began.
    assert set(written[:n_before]) <= tasks & set(halves)
    # Nothing is lost between ledger and parts: calls in the copied ledger that became rows are in
    # the copied parts.
    assert set(written[: len(halves) - 1]) <= tasks


# kills and refusals


@pytest.fixture
def small(tmp_path) -> Job:
    """A warehouse with few files, so that a test can kill at each of them."""
    job = job_on("sample", tmp_path / "base" / "warehouse")
    add_part(job, "a")
    ledger_of(job).parent.mkdir()
    with sqlite3.connect(ledger_of(job)) as ledger:
        ledger.execute("create table calls (x)")
    return job


def held(job: Job) -> tuple[list[str], int]:
    """The responses in the parts, and the number of calls in the ledger."""
    with sqlite3.connect(ledger_of(job)) as ledger:
        [n_calls] = ledger.execute("select count(*) from calls").fetchone()
    responses = rows_in(job, "from responses order by task_id")
    return [row["task_id"] for row in responses], n_calls


IMPORTS = """
from tasks.maintain.backup import backup, restore
from tests.kit import job_on
"""


@pytest.mark.long
def test_a_kill_of_a_backup_leaves_the_last_whole_one(small, tmp_path):
    backup(small, tmp_path / "base" / "backup")
    with sqlite3.connect(ledger_of(small)) as ledger:
        ledger.execute("insert into calls values (1)")
    add_part(small, "b")
    states = []
    work = "backup(job_on('sample', place / 'warehouse'), place / 'backup')"
    for path in killed_at_every_step(
        IMPORTS,
        work,
        tmp_path / "base",
        tmp_path / "places",
    ):
        restored = into(small, path / "restored")
        restore(restored, path / "backup")
        states.append(held(restored))

    before = (["a"], 0)
    after = (["a", "b"], 1)
    n_before = states.count(before)
    n_after = len(states) - n_before
    assert len(states) > 4
    assert n_after > 0
    assert states == [before] * n_before + [after] * n_after


@pytest.mark.long
def test_a_kill_of_a_restore_is_made_good_by_the_same_command(small, tmp_path):
    backup(small, tmp_path / "base" / "backup")
    held_before = held(small)
    shutil.rmtree(small.warehouse)
    work = "restore(job_on('sample', place / 'warehouse'), place / 'backup')"
    folders = killed_at_every_step(
        IMPORTS,
        work,
        tmp_path / "base",
        tmp_path / "places",
    )
    for path in folders[:-1]:
        restored = into(small, path / "warehouse")
        is_staged = (restored.warehouse / ".restoring" / "backup.json").exists()
        if is_staged or not (restored.warehouse / "parts").exists():
            restore(restored, path / "backup")
        assert held(restored) == held_before

    assert len(folders) > 4


def test_an_upload_that_was_cut_off_leaves_the_last_backup(small, store, tmp_path):
    def cut_off(n_files):
        with pytest.MonkeyPatch.context() as patched:
            Cut(patched, n_files)
            with pytest.raises(KeyboardInterrupt):
                backup(small, store)

    cut_off(3)
    reason = r"is not a complete backup, backup\.json is missing"
    with pytest.raises(PipelineError, match=reason):
        restore(into(small, tmp_path / "restored"), store)
    backup(small, store)
    add_part(small, "t2")
    cut_off(2)

    restore(into(small, tmp_path / "restored"), store)
    assert held(into(small, tmp_path / "restored"))[0] == ["a"]


def test_a_damaged_copy_is_refused_whole_and_renewed_by_verify(
    small, store, tmp_path
):
    backup(small, store)
    name = next(name for name in store.files() if "parts/responses" in name)
    content = store.read(name) or b""
    store.write(name, content[:-1] + b"?")
    with pytest.raises(
        PipelineError, match="missing, or changed since it was written"
    ):
        restore(into(small, tmp_path / "restored"), store)
    assert not list((tmp_path / "restored").rglob("*.parquet"))

    assert backup(small, store).rows == 0
    assert backup(small, store, must_verify=True).rows == 1
    assert store.read(name) == content


def test_a_target_with_other_files_or_in_the_warehouse_is_refused(
    small,
    store,
    tmp_path,
):
    backup(small, tmp_path / "whole")
    files_before = file_times(small.warehouse)
    with pytest.raises(UsageError, match="is not empty"):
        restore(small, tmp_path / "whole")
    assert file_times(small.warehouse) == files_before
    folder = Folder(tmp_path / "mine")
    for target, location in ((store, store), (folder.path, folder)):
        location.write("notes.txt", b"mine")
        reason = "has files that are not a backup; name an empty folder or prefix"
        with pytest.raises(UsageError, match=reason):
            backup(small, target)
        assert location.files() == {"notes.txt": 4}
    with pytest.raises(UsageError, match="is inside the warehouse"):
        backup(small, small.warehouse / "backup")
