"""Backups in a store: what is restored from there is what a folder would give, and nothing half uploaded counts."""

import hashlib
import json
from pathlib import Path

import pytest

from tasks.bundles.stores import Folder, Store
from tasks.config.job import Job
from tasks.llm.ledger.entries import Entry
from tasks.llm.replies import Reply
from tasks.maintain import backup, restore
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import job_on, recorded, rows_in
from tests.tasks.bundles.manifests import sealed
from tests.tasks.bundles.memory import Cut
from tests.tasks.maintain.test_backup import add_part, into


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A warehouse with a part and a ledger."""
    job = job_on("sample", tmp_path / "warehouse")
    add_part(job, "t1")

    recorded(job, Entry("key", 1, "c", "a-run", "m", "", "{}", Reply("ok", "x"), True, purpose="judge"))
    return job


def held(folder: Path) -> dict[str, str]:
    """The files that a backup brings back, by their content."""
    found = [path for name in ("ledger", "parts") for path in sorted((folder / name).rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def n_responses(job: Job) -> int:
    return len(rows_in(job, "from responses"))


def test_what_comes_back_from_a_store_is_what_comes_back_from_a_folder(job: Job, store: Store, tmp_path: Path) -> None:
    backup(job, store)
    backup(job, tmp_path / "folder")
    restore(into(job, tmp_path / "from-store"), store)
    restore(into(job, tmp_path / "from-folder"), tmp_path / "folder")

    found = held(tmp_path / "from-store")
    assert found == held(tmp_path / "from-folder")
    assert {"ledger/calls.sqlite"} < found.keys()
    assert 1 == n_responses(into(job, tmp_path / "from-store"))
    assert [] == list(job.warehouse.glob(".backup*"))


def test_an_upload_that_was_cut_off_is_no_backup_and_leaves_the_last_one_as_it_was(
    job: Job, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(n_files: int) -> None:
        with monkeypatch.context() as patched:
            Cut(patched, n_files)
            with pytest.raises(KeyboardInterrupt):
                backup(job, store)

    cut_off(3)
    with pytest.raises(PipelineError, match=r"is not a complete backup, backup\.json is missing"):
        restore(into(job, tmp_path / "restored"), store)
    backup(job, store)
    add_part(job, "t2")
    cut_off(2)

    restore(into(job, tmp_path / "restored"), store)
    assert 1 == n_responses(into(job, tmp_path / "restored"))


@pytest.mark.slow
def test_a_damaged_copy_is_refused_before_anything_is_restored_and_renewed_by_verify(
    job: Job, store: Store, tmp_path: Path
) -> None:
    backup(job, store)
    name = next(name for name in store.files() if "parts/responses" in name)
    content = store.read(name) or b""
    store.write(name, content[:-1] + b"?")
    with pytest.raises(PipelineError, match="missing, or not what was written"):
        restore(into(job, tmp_path / "restored"), store)
    assert not list((tmp_path / "restored").rglob("*.parquet"))

    assert 0 == backup(job, store).rows
    assert 1 == backup(job, store, must_verify=True).rows
    assert content == store.read(name)
    store.remove([name])
    with pytest.raises(PipelineError, match="missing, or not what was written"):
        restore(into(job, tmp_path / "restored"), store)


@pytest.mark.parametrize("has_hash", [True, False])
def test_a_backup_of_november_is_restored_and_renewed(has_hash: bool, job: Job, tmp_path: Path) -> None:
    backup(job, tmp_path / "backup")
    record = tmp_path / "backup" / "backup.json"
    document = json.loads(record.read_bytes())
    files = [
        {"path": each["name"].removeprefix("files/").removesuffix(f".{each['sha256'][:16]}"),
         "stored_as": each["name"], "n_bytes": each["n_bytes"], "sha256": each["sha256"]}
        for each in document["files"]
    ]  # fmt: skip
    older = {"format": "prbench-backup", "version": 1, "made_at": document["made_at"], "files": files}
    record.write_bytes(sealed(older) if has_hash else json.dumps(older).encode())
    restore(into(job, tmp_path / "restored"), tmp_path / "backup")

    assert 1 == n_responses(into(job, tmp_path / "restored"))
    assert 0 == backup(job, tmp_path / "backup").rows
    assert 2 == json.loads(record.read_bytes())["version"]


def test_a_place_that_holds_something_else_or_lies_in_the_warehouse_is_left_as_it_is(
    job: Job, store: Store, tmp_path: Path
) -> None:
    store.write("notes.txt", b"mine")
    Folder(tmp_path / "mine").write("notes.txt", b"mine")
    for place in (store, tmp_path / "mine"):
        with pytest.raises(UsageError, match="holds files that are not a backup; name an empty place"):
            backup(job, place)
    assert {"notes.txt": 4} == store.files() == Folder(tmp_path / "mine").files()
    with pytest.raises(UsageError, match="is inside the warehouse"):
        backup(job, job.warehouse / "backup")
