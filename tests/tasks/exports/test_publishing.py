"""Publications: whole, of one state, and named by a pointer that is replaced last."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql
from tasks.bundles.bundle import read_bundle, read_pointer, verify_bundle
from tasks.bundles.stores import Store
from tasks.config.job import Job
from tasks.exports.publishing import publish
from tasks.rules.errors import PipelineError
from tests.kit import admitted, imported, job_on, response, rows_in, written
from tests.tasks.bundles.memory import Cut
from warehouse import TABLES, Warehouse


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A warehouse with tasks, their canaries and a response."""
    job = job_on("sample", tmp_path / "warehouse")
    rows = admitted(["t1", "t2"])
    marked = [{**each, "canary": "a canary"} for each in rows["split_members"]]
    written(job.warehouse, rows | {"split_members": marked, "responses": [response("t1")]}).publish()
    return job


def add_response(job: Job, task_id: str) -> None:
    Warehouse(job.warehouse).write("responses", [response(task_id)])
    Warehouse(job.warehouse).publish()


def named(store: Store) -> str:
    """The publication that the pointer names."""
    found = read_pointer(store)
    assert found is not None
    return found.publication


def latest(store: Store) -> Store:
    return store.below(named(store))


def responses_in(store: Store) -> int:
    content = latest(store).read("tables/responses/part-0.parquet")
    return int(pq.read_table(pa.BufferReader(content)).num_rows)


def publications(store: Store) -> set[str]:
    return {name.split("/")[0] for name in store.below("publications").files()}


def test_a_publication_has_the_database_and_every_public_table_as_its_manifest_says_and_is_imported_elsewhere(
    job: Job, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Cut(monkeypatch, n_files=1000).names
    report = publish(job, store)
    bundle, files = read_bundle(latest(store), "publication"), latest(store).files()
    verify_bundle(latest(store), bundle)

    assert {"manifest.json", *(file.name for file in bundle.files)} == files.keys()
    names = {table["name"] for table in bundle.meta["tables"]}
    assert names == (TABLES.keys() - {"retractions", "removals"}) | sql.schema()["marts"].keys()
    assert {f"tables/{name}/part-0.parquet" for name in names} <= files.keys()
    assert (job.warehouse / "prbench.duckdb").read_bytes() == latest(store).read("prbench.duckdb")
    assert bundle.meta["warehouse_version"] == json.loads((job.warehouse / "warehouse.json").read_text())["version"]
    assert "without a report: there is none" in report.line
    assert [] == list(job.warehouse.glob(".publication*"))
    # A reader of a manifest finds all its files, and of the pointer all of a publication.
    assert [f"{latest(store).root}/manifest.json", f"{store.root}/current.json"] == order[-2:]
    members = pq.read_table(pa.BufferReader(latest(store).read("tables/split_members/part-0.parquet")))
    assert [None, None] == members["canary"].to_pylist()
    other = job_on("sample", tmp_path / "other")
    imported(other, store)
    assert rows_in(job, "from responses") == rows_in(other, "from responses")


@pytest.mark.slow
def test_an_unchanged_state_is_not_published_again_and_a_new_one_beside_the_old(job: Job, store: Store) -> None:
    publish(job, store)
    first, files = named(store), store.files()
    assert "unchanged since" in publish(job, store).line
    assert files == store.files()

    add_response(job, "t2")
    publish(job, store)

    assert (2, 2) == (responses_in(store), len(publications(store)))
    assert files.keys() <= store.files().keys()
    assert first != named(store)


@pytest.mark.parametrize("left", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.slow)])
def test_a_publication_that_is_cut_off_leaves_the_one_before_as_the_latest(
    left: int, job: Job, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(job, store)
    before, n_files = store.read("current.json"), len(latest(store).files()) + 1
    add_response(job, "t2")
    with monkeypatch.context() as patched:
        Cut(patched, n_files - left)
        with pytest.raises(KeyboardInterrupt):
            publish(job, store)

    assert (before, 1) == (store.read("current.json"), responses_in(store))
    assert [] == list(job.warehouse.glob(".publication*"))
    publish(job, store, n_kept=1)
    assert 2 == responses_in(store)


@pytest.mark.slow
def test_keep_removes_the_oldest_and_what_was_cut_off_and_never_what_the_pointer_names(job: Job, store: Store) -> None:
    publish(job, store)
    own = named(store).split("/")[1]
    other, cut_off = "20991231T235959Z-00000000", "20200101T000000Z-00000000"
    shelf = store.below("publications")
    shelf.write(f"{other}/manifest.json", b"{}")
    shelf.write(f"{cut_off}/prbench.duckdb", b"half")
    begun = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-00000000"
    shelf.write(f"{begun}/prbench.duckdb", b"half, and somebody is at work on it")
    shelf.write("notes/mine.txt", b"not a publication")

    assert "1 older publications removed" in publish(job, store, n_kept=1).line
    assert {own, other, begun, "notes"} == publications(store)


@pytest.mark.slow
def test_an_unchanged_state_is_published_again_where_files_of_its_publication_are_gone(job: Job, store: Store) -> None:
    publish(job, store)
    first = named(store)
    store.remove([f"{first}/prbench.duckdb"])

    assert "unchanged" not in publish(job, store).line

    assert 1 == responses_in(store)


POINTER = {"format": "prbench-publication", "version": 1, "content": "x", "published_at": "x"}


@pytest.mark.parametrize(("pointer", "said"), [
    (POINTER | {"publication": "../elsewhere"}, "which is not a publication"),
    (POINTER | {"publication": "publications/../../elsewhere"}, "which is not a publication"),
    ({"mine": True}, "is not a prbench-publication"),
])  # fmt: skip
def test_a_pointer_that_leads_elsewhere_or_is_of_others_is_left_alone(
    pointer: dict[str, Any], said: str, job: Job, store: Store
) -> None:
    store.write("current.json", json.dumps(pointer).encode())

    for use in (lambda: publish(job, store), lambda: imported(job, store)):
        with pytest.raises(PipelineError, match=said):
            use()
    assert (json.dumps(pointer).encode(), 1) == (store.read("current.json"), len(store.files()))


@pytest.mark.slow
def test_a_folder_is_published_to_like_a_store_and_an_open_pointer_reads_the_old_one(job: Job, tmp_path: Path) -> None:
    target = tmp_path / "published"
    publish(job, target)
    with (target / "current.json").open() as file:
        first = json.loads(file.read(5) + file.read())
        file.seek(0)
        add_response(job, "t2")
        publish(job, target, n_kept=1)
        assert first == json.loads(file.read())

    (only,) = (target / "publications").iterdir()
    assert json.loads((target / "current.json").read_text())["publication"] == f"publications/{only.name}"
    assert 2 == pq.read_table(only / "tables" / "responses").num_rows


@pytest.mark.slow
def test_of_the_report_folder_what_a_report_wrote_is_published_and_nothing_else(job: Job, store: Store) -> None:
    folder = job.report_folder
    (folder / "prbench").mkdir(parents=True)
    mark = '{"format": "prbench-report", "version": 3, "files": {"index.html": 1, "%s": 1}}'
    (folder / "report.json").write_text(mark % "../warehouse.json")
    (folder / "prbench" / "report.json").write_text(mark % "gone.html")
    for path in (folder / "index.html", folder / "prbench" / "index.html", folder / "private.txt"):
        path.write_text(path.name)
    publish(job, store)

    found = {name for name in latest(store).files() if name.startswith("report/")}
    pages = {"report/index.html", "report/prbench/index.html"}
    assert pages | {"report/report.json", "report/prbench/report.json"} == found
