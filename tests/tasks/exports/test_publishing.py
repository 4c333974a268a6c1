"""Publications: whole, of one state, and named by a pointer that is replaced last."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql
from tasks.bundles.bundle import read_bundle, read_pointer, verify_bundle
from tasks.bundles.stores import Store
from tasks.config.job import Job
from tasks.exports.publishing import publish
from tasks.exports.tables import import_tables, opened_export
from tasks.rules.errors import PipelineError
from tests.kit import admitted, job_on, response, written
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


def test_a_publication_has_the_database_and_every_public_table_as_its_manifest_says(job: Job, store: Store) -> None:
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


@pytest.mark.slow
def test_no_canary_is_in_a_published_table(job: Job, store: Store) -> None:
    publish(job, store)
    members = pq.read_table(pa.BufferReader(latest(store).read("tables/split_members/part-0.parquet")))

    assert [None, None] == members["canary"].to_pylist()


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


@pytest.mark.slow
def test_the_manifest_is_the_last_file_of_a_publication_and_the_pointer_comes_after_it(
    job: Job, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Cut(monkeypatch, n_files=1000).names
    publish(job, store)

    *files, last = order
    assert f"{latest(store).root}/manifest.json" == files[-1]
    assert f"{store.root}/current.json" == last


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
    shelf.write("notes/mine.txt", b"not a publication")

    assert "1 older publications removed" in publish(job, store, n_kept=1).line
    assert {own, other, "notes"} == publications(store)


@pytest.mark.slow
def test_a_publication_that_somebody_else_is_at_work_on_is_not_removed(job: Job, store: Store) -> None:
    publish(job, store)
    begun = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-00000000"
    store.write(f"publications/{begun}/prbench.duckdb", b"half")

    publish(job, store, n_kept=1)

    assert begun in publications(store)


@pytest.mark.slow
def test_an_unchanged_state_is_published_again_where_files_of_its_publication_are_gone(job: Job, store: Store) -> None:
    publish(job, store)
    first = named(store)
    store.remove([f"{first}/prbench.duckdb"])

    assert "unchanged" not in publish(job, store).line

    assert 1 == responses_in(store)


@pytest.mark.parametrize("named", ["../elsewhere", "publications/../../elsewhere"])
def test_a_pointer_that_leads_elsewhere_is_refused(named: str, job: Job, store: Store) -> None:
    document = {"format": "prbench-publication", "version": 1, "content": "x", "published_at": "x"}
    store.write("current.json", json.dumps({**document, "publication": named}).encode())

    with pytest.raises(PipelineError, match="which is not a publication"):
        publish(job, store)
    with pytest.raises(PipelineError, match="which is not a publication"), opened_export(store, is_quiet=True):
        pass
    assert {"current.json"} == store.files().keys()


def test_a_file_of_others_under_the_name_of_the_pointer_is_left_alone(job: Job, store: Store) -> None:
    store.write("current.json", b'{"mine": true}')

    with pytest.raises(PipelineError, match="is not a prbench-publication"):
        publish(job, store)
    assert b'{"mine": true}' == store.read("current.json")


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
def test_another_warehouse_imports_what_was_published(job: Job, store: Store, tmp_path: Path) -> None:
    publish(job, store)
    other = job_on("sample", tmp_path / "other")
    with opened_export(store, is_quiet=True) as export:
        import_tables(other, export)

    with Warehouse(job.warehouse).reader() as wanted, Warehouse(other.warehouse).reader() as found:
        assert wanted.rows("from responses") == found.rows("from responses")


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
