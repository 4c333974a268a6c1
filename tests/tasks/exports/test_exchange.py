"""Exporting a warehouse and importing it into another: the same rows and leaderboard, and no
partial import.
"""

import json
import os
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql
from tasks.aggregate import aggregate
from tasks.bundles.bundle import file_at, read_bundle, read_pointer, verify_bundle
from tasks.bundles.stores import Store
from tasks.config.job import Job
from tasks.exports.tables import export_tables, publish
from tasks.rules.errors import PipelineError, UsageError
from tests import kit
from tests.kit import (
    admitted,
    criterion,
    imported,
    job_on,
    response,
    row,
    rows_in,
    values_in,
    verdict,
    written,
)
from tests.tasks.aggregate.world import random_world
from tests.tasks.bundles.manifests import sealed
from tests.tasks.bundles.memory import Cut
from warehouse import TABLES, Warehouse

without_scores = pytest.mark.usefixtures("without_scores")
LEADERBOARD = """
    from leaderboard
    order by split, judge, judge_trial, model, score_name, vintage
"""


def marked(tables: kit.Rows) -> kit.Rows:
    """The same rows, with a canary."""
    members = [member | {"canary": "a canary"} for member in tables["split_members"]]
    return tables | {"split_members": members}


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Job:
    """A warehouse with responses, verdicts, intervals, and canaries; tests must not change it."""
    job = job_on("sample", tmp_path_factory.mktemp("filled") / "warehouse")
    runs = [
        row("runs", run_id="ended", outcome="done"),
        row("runs", run_id="on", outcome="running"),
    ]
    written(job.warehouse, marked(random_world(seed=7, n_tasks=12)) | {"runs": runs})
    aggregate(job)
    return job


@pytest.fixture(scope="module")
def exported(filled: Job, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "exported"
    export_tables(filled, folder)
    return folder


@pytest.fixture
def copy(exported: Path, tmp_path) -> Path:
    """A copy of the export, to damage."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture
def empty(tmp_path) -> Job:
    return job_on("sample", tmp_path / "other")


def file_list_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def rewritten(folder: Path, **changes: Any):
    (folder / "manifest.json").write_bytes(sealed(file_list_of(folder) | changes))


@pytest.fixture(scope="module")
def received(exported: Path, tmp_path_factory) -> Job:
    """A warehouse with the import of the export; tests must not change it."""
    job = job_on("sample", tmp_path_factory.mktemp("received"))
    report = imported(job, exported)

    tables = file_list_of(exported)["tables"]
    assert report.rows == sum(table["n_rows"] for table in tables)
    return job


@pytest.mark.parametrize(
    "table",
    ["task_rows", "criteria", "responses", "verdicts", "measures", "checks"],
)
def test_an_import_has_all_rows_of_an_export(filled, received, table):
    query = f"select * from {table} order by all"

    assert rows_in(received, query) == rows_in(filled, query)


def test_an_import_has_the_leaderboard_with_its_intervals(filled, received):
    board = rows_in(received, LEADERBOARD)

    assert any(row["ci_low"] is not None for row in board)
    for actual, expected in zip(board, rows_in(filled, LEADERBOARD), strict=True):
        # Rows may be in another order, so the last digits of sums may differ.
        assert numbers_in(actual) == pytest.approx(numbers_in(expected), rel=1e-12)
        # All other columns are equal.
        assert actual | numbers_in(expected) == expected


def numbers_in(row: kit.Row) -> dict[str, float]:
    return {name: value for name, value in row.items() if isinstance(value, float)}


def test_an_import_has_no_canaries_and_no_runs_that_go_on(received):
    assert values_in(received, "select distinct canary from split_members") == [
        (None,)
    ]
    assert values_in(received, "select run_id from runs") == [("ended",)]


def test_a_second_import_writes_nothing(received, exported):
    parts = sorted(received.warehouse.rglob("*.parquet"))

    assert imported(received, exported).rows == 0
    assert sorted(received.warehouse.rglob("*.parquet")) == parts


@without_scores
def test_an_unknown_table_of_an_export_is_left_out_and_a_missing_column_is_null(
    copy, empty
):
    # As in an old export, in which tasks had no `expert` and `measures` had another name.
    table = pq.read_table(copy / "task_rows/part-0.parquet").drop_columns(["expert"])
    pq.write_table(table, copy / "task_rows/part-0.parquet")
    manifest = file_list_of(copy)
    tables = {table["name"]: table for table in manifest["tables"]}
    tables["task_rows"]["columns"].pop("expert")
    tables["measures"]["name"] = "intervals"
    names = [file["name"] for file in manifest["files"]]
    files = [asdict(file_at(copy / name, name)) for name in names]
    rewritten(copy, tables=manifest["tables"], files=files)

    report = imported(empty, copy)

    assert report.warnings == ["intervals: not imported: unknown table"]
    assert rows_in(empty, "from measures") == []
    experts = values_in(empty, "select expert from tasks")
    assert experts == [(None,)] * 13  # twelve tasks, and the refused one


def test_a_large_table_is_cut_into_files_that_hold_it(filled, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.exports.tables.ROWS_A_FILE", 100)
    export_tables(filled, tmp_path / "out", ["verdicts"])
    [table] = file_list_of(tmp_path / "out")["tables"]
    files = [pq.read_table(tmp_path / "out" / name) for name in table["files"]]

    assert len(files) > 2
    assert max(file.num_rows for file in files) <= 100
    exported_ids = pa.concat_tables(files)["verdict_id"].to_pylist()
    stored_ids = [row["verdict_id"] for row in rows_in(filled, "from verdicts")]
    assert sorted(exported_ids) == sorted(stored_ids)


def test_a_table_that_is_not_there_is_refused_before_anything_is_written(
    filled, tmp_path
):
    with pytest.raises(UsageError, match="--table verdict: no such table"):
        export_tables(filled, tmp_path / "out", ["verdict"])
    assert list(tmp_path.iterdir()) == []


@without_scores
def test_an_export_of_one_benchmark_has_its_rows_alone(tmp_path):
    tables = admitted(["t1", "t2"])
    foreign_tasks = [task | {"benchmark": "other"} for task in tables["task_rows"]]
    runs = [row("runs", run_id="ended", outcome="done")]
    job = job_on("sample", tmp_path / "warehouse")
    rows = kit.combined(tables, {"task_rows": foreign_tasks, "runs": runs})
    written(job.warehouse, rows).publish()

    export_tables(job, tmp_path / "out", benchmark="prbench")

    tasks = pq.read_table(tmp_path / "out/task_rows/part-0.parquet")
    assert tasks["benchmark"].to_pylist() == ["prbench", "prbench"]
    assert sorted(tasks["task_id"].to_pylist()) == ["t1", "t2"]
    assert pq.read_metadata(tmp_path / "out/runs/part-0.parquet").num_rows == 1


RESPONSE = response("t1", model="ada")
CRITERION = criterion("t1", 0, 5.0)


def warehouse_with(folder: Path, **tables: list[kit.Row]) -> Job:
    job = job_on("sample", folder)
    written(folder, admitted(["t1"]) | {"criteria": [CRITERION]} | tables).publish()
    return job


@without_scores
@pytest.mark.slow
def test_rows_that_are_here_stay_but_a_decided_one_takes_the_place_of_a_failed_one(
    tmp_path,
):
    failed = verdict(RESPONSE, CRITERION, None, judge="a")
    decided = verdict(RESPONSE, CRITERION, 1.0, judge="b")
    job = warehouse_with(
        tmp_path / "here",
        responses=[RESPONSE | {"text": "As here."}],
        verdicts=[failed, decided],
    )
    source = warehouse_with(
        tmp_path / "there",
        responses=[RESPONSE | {"text": "As there."}],
        verdicts=[
            verdict(RESPONSE, CRITERION, 1.0, judge="a"),
            verdict(RESPONSE, CRITERION, None, judge="b"),
        ],
    )
    export_tables(source, tmp_path / "exported")

    report = imported(job, tmp_path / "exported")

    assert report.rows == 1
    assert values_in(job, "select text from responses") == [("As here.",)]
    assert values_in(job, "select status from verdicts") == [("met",), ("met",)]


@without_scores
@pytest.mark.slow
def test_checks_of_a_revision_that_was_checked_here_are_not_imported(tmp_path):
    refusal = row(
        "refusals",
        task_id="t1",
        check_name="any",
        severity="quarantine",
        created_at=kit.at(9),
    )
    later_check = admitted([])["checks"][0] | {
        "run_id": "later",
        "created_at": kit.at(9),
    }
    job = warehouse_with(tmp_path / "here")
    source = warehouse_with(
        tmp_path / "there", checks=[later_check], refusals=[refusal]
    )
    export_tables(source, tmp_path / "exported")

    assert imported(job, tmp_path / "exported").rows == 0


@without_scores
@pytest.mark.slow
def test_rows_that_were_retracted_here_are_not_imported(tmp_path):
    retraction = row("retractions", import_batch="a-file", is_retracted=True)
    job = warehouse_with(tmp_path / "here", retractions=[retraction])
    retracted_response = RESPONSE | {"import_batch": "a-file", "source": "imported"}
    source = warehouse_with(tmp_path / "there", responses=[retracted_response])
    export_tables(source, tmp_path / "exported")

    assert imported(job, tmp_path / "exported").rows == 0


DAMAGE = {
    "no tables": (lambda folder: rewritten(folder, tables=None), "cannot be read"),
    "a file that is not listed": (
        lambda folder: rewritten(folder, files=[]),
        "is of a table and not among the files",
    ),
    "other bytes": (
        lambda folder: os.truncate(folder / "verdicts/part-0.parquet", 99),
        "missing, or changed since",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_export_is_refused_in_one_line_and_nothing_is_taken(
    copy,
    empty,
    case,
):
    damage, reason = DAMAGE[case]
    damage(copy)

    with pytest.raises(PipelineError, match=kit.one_line(reason)):
        imported(empty, copy)
    assert list(empty.warehouse.rglob("*.parquet")) == []


@pytest.fixture
def job(tmp_path) -> Job:
    """A warehouse with tasks, their canaries and a response."""
    job = job_on("sample", tmp_path / "warehouse")
    rows = marked(admitted(["t1", "t2"])) | {"responses": [response("t1")]}
    written(job.warehouse, rows).publish()
    return job


def add_response(job: Job):
    Warehouse(job.warehouse).write("responses", [response("t2")])
    Warehouse(job.warehouse).publish()


def latest(store: Store) -> Store:
    """The publication that the pointer names."""
    pointer = read_pointer(store)
    return store.below(pointer.publication)


def responses_in(store: Store) -> int:
    content = latest(store).read("tables/responses/part-0.parquet")
    return int(pq.read_table(pa.BufferReader(content)).num_rows)


def publications(store: Store) -> set[str]:
    return {name.split("/")[0] for name in store.below("publications").files()}


def test_a_publication_has_the_database_and_every_public_table_as_its_manifest_says(
    job, store
):
    publish(job, store)

    publication = latest(store)
    bundle = read_bundle(publication, "publication")
    files = publication.files()
    verify_bundle(publication, bundle)
    assert files.keys() == {"manifest.json", *(file.name for file in bundle.files)}
    public_names = {*TABLES, *sql.schema()["marts"]} - {"retractions", "removals"}
    names = {table["name"] for table in bundle.meta["tables"]}
    assert names == public_names
    assert {f"tables/{name}/part-0.parquet" for name in names} <= files.keys()
    database = (job.warehouse / "prbench.duckdb").read_bytes()
    assert publication.read("prbench.duckdb") == database
    version = json.loads((job.warehouse / "warehouse.json").read_text())["version"]
    assert bundle.meta["warehouse_version"] == version
    members = publication.read("tables/split_members/part-0.parquet")
    canaries = pq.read_table(pa.BufferReader(members))["canary"]
    assert canaries.to_pylist() == [None, None]


@without_scores
def test_a_publication_writes_its_manifest_and_the_pointer_last_and_is_imported(
    job,
    store,
    empty,
    monkeypatch,
):
    written_names = Cut(monkeypatch, n_files=1000).names
    publish(job, store)
    imported(empty, store)

    manifest = f"{latest(store).root}/manifest.json"
    assert written_names[-2:] == [manifest, f"{store.root}/current.json"]
    assert list(job.warehouse.glob(".publication*")) == []
    assert rows_in(empty, "from responses") == rows_in(job, "from responses")


@without_scores
@pytest.mark.slow
def test_an_unchanged_state_is_not_published_again_and_a_new_one_beside_the_old(
    job, store
):
    publish(job, store)
    files = store.files()

    assert "unchanged since" in publish(job, store).line
    assert store.files() == files

    add_response(job)
    publish(job, store)

    assert responses_in(store) == 2
    assert len(publications(store)) == 2
    assert files.keys() <= store.files().keys()


@without_scores
@pytest.mark.slow
def test_a_cut_off_publication_leaves_the_last_one(job, store, monkeypatch):
    publish(job, store)
    pointer = store.read("current.json")
    n_files = len(latest(store).files()) + 1
    add_response(job)

    # The pointer is the last file, and the manifest the one before it.
    for n_missing in (1, 2, 30):
        with monkeypatch.context() as patched:
            Cut(patched, n_files - n_missing)
            with pytest.raises(KeyboardInterrupt):
                publish(job, store)
        assert store.read("current.json") == pointer
        assert responses_in(store) == 1
        assert list(job.warehouse.glob(".publication*")) == []
    publish(job, store)
    assert responses_in(store) == 2


@without_scores
@pytest.mark.slow
def test_keep_removes_the_oldest_and_what_was_cut_off_and_never_what_the_pointer_names(
    job, store
):
    publish(job, store)
    [pointed] = publications(store)
    newest = "20991231T235959Z-00000000"
    oldest = "20210101T000000Z-00000000"
    cut_off = "20200101T000000Z-00000000"
    begun = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-00000000"
    for name in (
        f"{newest}/manifest.json",
        f"{oldest}/manifest.json",
        f"{cut_off}/prbench.duckdb",
        f"{begun}/prbench.duckdb",
        "notes/mine.txt",
    ):
        store.below("publications").write(name, b"content")

    report = publish(job, store, n_kept=1)

    assert "2 older publications removed" in report.line
    assert publications(store) == {pointed, newest, begun, "notes"}


POINTER = {
    "format": "prbench-publication",
    "version": 2,
    "content": "x",
    "published_at": "x",
    "files": [],
}


@without_scores
@pytest.mark.parametrize(
    ("pointer", "reason"),
    [
        (POINTER | {"publication": "../elsewhere"}, "which is not a publication"),
        (
            POINTER | {"publication": "publications/../../elsewhere"},
            "which is not a publication",
        ),
        ({"mine": True}, "is not a prbench-publication"),
    ],
)
def test_a_pointer_to_elsewhere_is_left_alone(pointer, reason, job, store):
    store.write("current.json", sealed(pointer))

    with pytest.raises(PipelineError, match=reason):
        publish(job, store)
    with pytest.raises(PipelineError, match=reason):
        imported(job, store)
    assert store.read("current.json") == sealed(pointer)
    assert len(store.files()) == 1


@without_scores
@pytest.mark.slow
def test_of_the_report_folder_what_a_report_wrote_is_published_and_nothing_else(
    job, store
):
    folder = job.report_folder
    folder.joinpath("prbench").mkdir(parents=True)
    # A file outside of the folder and a missing one are left out.
    mark = '{"format": "prbench-report", "version": 3, "files": {"index.html": 1, "%s": 1}}'
    (folder / "report.json").write_text(mark % "../warehouse.json")
    (folder / "prbench" / "report.json").write_text(mark % "gone.html")
    for name in ("index.html", "prbench/index.html", "private.txt"):
        (folder / name).write_text(name)

    publish(job, store)

    assert latest(store).below("report").files().keys() == {
        "index.html",
        "report.json",
        "prbench/index.html",
        "prbench/report.json",
    }
