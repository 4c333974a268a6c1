"""Versions of a warehouse: an older one is brought up, a newer one refused, and a database of another code told."""

import hashlib
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.builders import row
from tests.warehouse.conftest import Start
from tests.warehouse.parts import published, put
from warehouse import Warehouse, WarehouseBusy, WarehouseError, WarehouseOutdated, take_notices
from warehouse.contracts.columns import FORMER_COLUMNS
from warehouse.database.losses import read_losses
from warehouse.files.atomic import read_sealed, write_sealed
from warehouse.parts import migrations
from warehouse.parts.migrations import Migration, known_version, version_of


def note_version(root: Path, version: object) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / "warehouse.json").write_text(json.dumps({"version": version}), encoding="utf-8")


def test_a_new_warehouse_has_the_current_version_when_it_is_first_written(warehouse: Warehouse) -> None:
    assert version_of(warehouse.root) is None
    warehouse.write("runs", [row("runs")])

    assert {"version": known_version()} == read_sealed(warehouse.root / "warehouse.json")


def test_parts_without_a_version_are_version_1_until_a_run_begins(warehouse: Warehouse) -> None:
    put(warehouse.root, "runs", 1, [row("runs", run_id="then")])
    warehouse.write("runs", [row("runs", run_id="now")])
    assert 1 == version_of(warehouse.root)

    with warehouse.writing():
        assert known_version() == version_of(warehouse.root)
    warehouse.publish()
    assert ["now", "then"] == [found["run_id"] for found in published(warehouse, "runs")]


REFUSED = {
    "writing": lambda warehouse: warehouse.writing().__enter__(),
    "write": lambda warehouse: warehouse.write("runs", [row("runs")]),
    "publish": lambda warehouse: warehouse.publish(),
    "reader": lambda warehouse: warehouse.reader(),
    "compact": lambda warehouse: warehouse.compact(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_newer_warehouse_is_refused_in_one_line(warehouse: Warehouse, what: str) -> None:
    put(warehouse.root, "runs", 1, [row("runs")])
    note_version(warehouse.root, 9)
    before = sorted(warehouse.root.rglob("*"))

    with pytest.raises(WarehouseError) as caught:
        REFUSED[what](warehouse)

    assert (
        f"{warehouse.root}: this warehouse was written by a newer prbench (version 9, this one knows "
        f"{known_version()}); upgrade prbench"
    ) == str(caught.value)
    assert before == sorted(warehouse.root.rglob("*"))


@pytest.mark.parametrize("content", ["", "{}", '{"version": null}', "[2]"])
def test_a_version_that_cannot_be_told_is_told_in_one_line(warehouse: Warehouse, content: str) -> None:
    warehouse.root.mkdir()
    (warehouse.root / "warehouse.json").write_text(content, encoding="utf-8")

    with pytest.raises(WarehouseError, match=r"warehouse\.json: cannot be read") as caught, warehouse.writing():
        pass
    assert 1 == len(str(caught.value).splitlines())


STEPS = """
import os, pathlib, signal, sys
from warehouse import Warehouse
from warehouse.parts import migrations
from warehouse.parts.migrations import Migration

def step(number):
    def apply(root):
        done = root / f"step-{number}"
        if sys.argv[2] == f"in {number}":
            os.kill(os.getpid(), signal.SIGKILL)
        done.touch()
        if sys.argv[2] == f"after {number}":
            os.kill(os.getpid(), signal.SIGKILL)
    return Migration(number, f"step {number}", apply)

migrations.MIGRATIONS = (*migrations.MIGRATIONS, step(5), step(6))
with Warehouse(sys.argv[1]).writing():
    print("done", flush=True)
"""


@pytest.mark.slow
def test_steps_are_done_in_order_and_one_that_was_cut_off_is_done_again(warehouse: Warehouse, start: Start) -> None:
    note_version(warehouse.root, 4)
    for killed, version, done in (
        ("in 5", 4, []), ("after 5", 4, ["step-5"]), ("in 6", 5, ["step-5"]), ("after 6", 5, ["step-5", "step-6"]),
        ("never", 6, ["step-5", "step-6"]), ("in 6", 6, ["step-5", "step-6"]),
    ):  # fmt: skip
        output, _ = start(STEPS, warehouse.root, killed).communicate()
        assert version == json.loads((warehouse.root / "warehouse.json").read_text(encoding="utf-8"))["version"]
        assert done == sorted(path.name for path in warehouse.root.glob("step-*"))
        assert ("done\n" if version == 6 else "") == output


def test_version_3_gets_the_names_of_chunks_and_of_sets_of_graders(warehouse: Warehouse) -> None:
    for number in (1, 2):
        evidence = row("evidence", verdict_id="v", round=1, chunk_number=number, n_chunks=2, status="ok")
        warehouse.write("evidence", [evidence | {"evidence": [f"quote {number}"]}])
    warehouse.write("grader_sets", [row("grader_sets", majority="both", members=["a", "b"])])
    warehouse.publish()
    former = {"chunk_number": "part_number", "n_chunks": "n_parts"}
    for path in (warehouse.root / "parts" / "evidence").glob("*.parquet"):
        rows = pq.read_table(path)
        pq.write_table(rows.rename_columns([former.get(name, name) for name in rows.column_names]), path)
        content_hash = hashlib.sha256(path.read_bytes()).hexdigest()[:24]
        path.rename(path.with_name(f"{path.name.partition('-')[0]}-{content_hash}.parquet"))
    (warehouse.root / "parts" / "grader_sets").rename(warehouse.root / "parts" / "grader_panels")
    (warehouse.root / "parts" / "list.json").unlink()
    warehouse.database.unlink()
    note_version(warehouse.root, 3)

    with warehouse.writing():
        pass
    warehouse.publish()
    found = sorted(
        (each["chunk_number"], each["n_chunks"], each["evidence"]) for each in published(warehouse, "evidence")
    )
    assert [(1, 2, ["quote 1"]), (2, 2, ["quote 2"])] == found
    assert [["a", "b"]] == [each["members"] for each in published(warehouse, "grader_sets")]
    assert [] == take_notices(warehouse.root)


def test_a_damaged_part_of_version_3_comes_back_from_the_database_of_that_time(warehouse: Warehouse) -> None:
    for number in (1, 2):
        evidence = row("evidence", verdict_id="v", round=1, chunk_number=number, n_chunks=2, status="ok")
        warehouse.write("evidence", [evidence | {"evidence": [f"quote {number}"]}])
    warehouse.publish()
    listing = read_sealed(warehouse.root / "parts" / "list.json")
    with duckdb.connect(str(warehouse.database)) as database:
        for today, former in FORMER_COLUMNS.items():
            database.execute(f"alter table evidence rename column {today} to {former}")
        for path in sorted((warehouse.root / "parts" / "evidence").glob("*.parquet")):
            rows = pq.read_table(path)
            pq.write_table(rows.rename_columns([FORMER_COLUMNS.get(name, name) for name in rows.column_names]), path)
            content_hash = hashlib.sha256(path.read_bytes()).hexdigest()[:24]
            old = path.rename(path.with_name(f"{path.name.partition('-')[0]}-{content_hash}.parquet"))
            database.execute("update published_parts set part = ? where part = ?", [old.name, path.name])
            names = listing["parts"]["evidence"]
            listing["parts"]["evidence"] = [old.name if name == path.name else name for name in names]
    write_sealed(warehouse.root / "parts" / "list.json", listing)
    note_version(warehouse.root, 3)
    with old.open("r+b") as file:
        file.seek(20)
        file.write(b"damaged")

    with warehouse.writing():
        warehouse.verify()

    found = sorted((each["chunk_number"], each["evidence"]) for each in published(warehouse, "evidence"))
    assert [(1, ["quote 1"]), (2, ["quote 2"])] == found
    assert [] == read_losses(warehouse.root)


def test_a_warehouse_with_a_run_at_work_is_not_migrated(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    note_version(warehouse.root, known_version())
    with warehouse.writing():
        new = Migration(known_version() + 1, "a step")
        monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, new))
        with pytest.raises(WarehouseBusy, match="at work"), warehouse.writing():
            pass
    assert new.version - 1 == version_of(warehouse.root)


def test_the_parser_is_noted_beside_the_version_and_outlives_a_migration(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1 == warehouse.parser
    warehouse.note_parser(2)
    assert (2, known_version()) == (warehouse.parser, version_of(warehouse.root))

    new = Migration(known_version() + 1, "a step")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, new))
    with warehouse.writing():
        pass
    assert (2, new.version) == (warehouse.parser, version_of(warehouse.root))


def test_every_step_says_what_it_does_and_they_are_numbered() -> None:
    assert list(range(2, known_version() + 1)) == [step.version for step in migrations.MIGRATIONS]
    assert all(step.meaning.endswith(".") for step in migrations.MIGRATIONS)


# databases that another version of the code published


@pytest.mark.parametrize("change", ["update published_from set stamp = 'other'", "drop table published_from"])
def test_a_database_of_another_code_is_told_in_one_line_and_renewed_by_publishing(
    warehouse: Warehouse, change: str
) -> None:
    warehouse.write("runs", [row("runs", run_id="r")])
    warehouse.publish()
    with duckdb.connect(str(warehouse.database)) as connection:
        connection.execute(change)

    with pytest.raises(WarehouseOutdated) as caught:
        warehouse.reader()
    assert (
        f"{warehouse.database}: was published by another version of prbench; `prbench aggregate` renews it without a "
        "model call"
    ) == str(caught.value)
    assert warehouse.publish()
    assert ["r"] == [found["run_id"] for found in published(warehouse, "runs")]
