"""Parts and databases with flipped bits, cut short, deleted or swapped: found, reported, and
restored.
"""

import json
import random
import resource
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit import Patch, one_line, response, row, rows_in, verdict
from tests.warehouse.parts import DAMAGES, flip, rows_of, without_marts
from warehouse import Warehouse, WarehouseError
from warehouse.columns import COLUMNS
from warehouse.files import is_database_whole, is_whole, pop_notices
from warehouse.parts import VERSION, refuse_other_version
from warehouse.tables import TABLES

pytestmark = pytest.mark.slow


def lines() -> list[str]:
    return [notice.line for notice in pop_notices()]


def verdicts_on(of_response: dict[str, Any], number: int) -> list[dict[str, Any]]:
    criteria = [{"criterion_id": f"c{i}", "content_hash": f"h{i}"} for i in range(number)]
    return [verdict(of_response, each, float(i % 2)) for i, each in enumerate(criteria)]


def filled(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """Fill and publish a warehouse with some parts of verdicts, responses, runs and labels; return
    its rows.
    """
    for number in range(3):
        of_response = response("t", trial=number + 1)
        warehouse.write("responses", [of_response])
        warehouse.write("verdicts", verdicts_on(of_response, 20))
        warehouse.write(
            "runs", [row("runs", run_id="r", command=f"{number}"), row("runs", run_id=f"r{number}")]
        )
        warehouse.write(
            "labels",
            [
                row(
                    "labels",
                    field="Law",
                    kind="k",
                    label=f"{number}",
                )
            ],
        )
    warehouse.publish()
    return rows_of(warehouse)


@pytest.mark.usefixtures("quick")
def test_where_too_many_files_are_open_that_is_the_cause_and_nothing_counts_as_damaged(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(tmp_path)
    filled(warehouse)
    part = next((tmp_path / "parts" / "verdicts").glob("*.parquet"))
    is_database_whole(warehouse.database)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for look, of in (
        (refuse_other_version, tmp_path),
        (is_whole, part),
        (is_database_whole, warehouse.database),
    ):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                look(of)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert lines() == []


def rebuilt(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that a build from the parts alone gives."""
    copy = Warehouse(warehouse.root.with_name("copy"))
    shutil.rmtree(copy.root, ignore_errors=True)
    shutil.copytree(warehouse.root, copy.root)
    copy.database.unlink()
    copy.publish()
    return rows_of(copy)


def every_table(number: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Made-up rows for every stored table."""
    of_type = {
        pa.string(): "text",
        pa.int64(): 7,
        pa.float64(): 0.5,
        pa.bool_(): True,
    }
    for table in TABLES.values():
        rows = []
        for i in range(5):
            values = {name: of_type.get(COLUMNS[name][0]) for name in table.columns}
            values |= (
                {"created_at": datetime(2026, 1, 1, tzinfo=UTC)} if "created_at" in values else {}
            )
            values |= {
                name: f"{number}-{i}" for name in table.key if COLUMNS[name][0] == pa.string()
            }
            if (
                table.name != "retractions" and "import_batch" in values
            ):  # of a batch that is not retracted
                values["import_batch"] = (
                    f"kept {number}-{i}" if "import_batch" in table.key else None
                )
            values |= {"status": "ok"} if "status" in values else {}
            # Only the last response of each part is removed: the others are newer than their
            # removals.
            values |= (
                {"created_at": datetime(2025, 1, 1, tzinfo=UTC)}
                if table.name == "removals" and i < 4
                else {}
            )
            rows.append(values)
        yield table.name, rows


@pytest.mark.long
def test_damaged_parts_of_any_table_are_restored(warehouse: Warehouse, monkeypatch: Patch) -> None:
    without_marts(monkeypatch)
    for number in range(2):
        for name, rows in every_table(number):
            warehouse.write(name, rows)
    warehouse.publish()
    before = rows_of(warehouse)
    chosen = random.Random(8)
    assert [name for name, rows in before.items() if not rows] == []

    for what in ("deleted", "a flipped bit", "cut short"):
        victims = {name: chosen.choice(warehouse.store.standing(name)) for name in TABLES}
        for path in victims.values():
            if what == "a flipped bit":
                flip(path, chosen.randrange(path.stat().st_size), bit=chosen.randrange(8))
                assert not is_whole(path), path
            else:
                DAMAGES[what](path)
        assert len(warehouse.damage()) >= len(TABLES)
        assert warehouse.verify()
        reported = lines()
        assert before == rows_of(warehouse), what
        assert [
            path for path in victims.values() if not any(path.name in line for line in reported)
        ] == []
        assert any("restored from the last published database" in line for line in reported)
        aside = [
            (warehouse.root / "damaged" / name / path.name).exists()
            for name, path in victims.items()
        ]
        assert {what != "deleted"} == set(aside)
    assert before == rebuilt(warehouse)
    assert not warehouse.losses()
    assert not warehouse.verify()
    assert not lines()


def test_rows_that_came_after_a_damaged_part_stand_before_its_restored_ones(
    warehouse: Warehouse, quick: None
) -> None:
    filled(warehouse)
    victim = warehouse.store.standing("runs")[-1]
    flip(victim)
    warehouse.write("runs", [row("runs", run_id="r", command="newer")])
    warehouse.verify()

    with warehouse.reader() as reader:
        assert reader.table("select command from runs where run_id = 'r'")[1] == [("newer",)]
        assert reader.value("select count(*) from runs") == 4


def failed_rows(warehouse: Warehouse) -> list[Path]:
    """The parts of a decision and of a later failure with the same key."""
    for status in ("timeout", "ok", "refused"):
        warehouse.write(
            "responses", [response("t", status=status), response(f"{status}", status="timeout")]
        )
    warehouse.publish()
    return warehouse.store.standing("responses")[1:]


def last_of_its_kind(warehouse: Warehouse) -> list[Path]:
    """A merged part whose content equals that of the last part that it replaced."""
    for outcome in ("running", "done") * 2:
        warehouse.write("runs", [row("runs", run_id="r", outcome=outcome)])
    warehouse.publish()
    warehouse.compact()
    return warehouse.store.standing("runs")


@pytest.mark.parametrize("fill", [failed_rows, last_of_its_kind])
def test_restored_rows_count_as_before(
    warehouse: Warehouse, quick: None, fill: Callable[[Warehouse], list[Path]]
) -> None:
    victims = fill(warehouse)
    before = rows_of(warehouse)
    for path in victims:
        flip(path)
    warehouse.verify()

    assert before == rows_of(warehouse) == rebuilt(warehouse)
    assert warehouse.losses() == []


# merged parts


@pytest.mark.parametrize("n_compactions", [0, 2])
def test_a_part_damaged_before_a_compaction_is_restored(
    warehouse: Warehouse, quick: None, n_compactions: int
) -> None:
    before = filled(warehouse)
    for _ in range(n_compactions):
        warehouse.compact()
    victim = warehouse.store.standing("verdicts")[0]
    flip(victim)
    warehouse.compact()

    assert any(victim.name in line for line in lines())
    assert before == rows_of(warehouse) == rebuilt(warehouse)


# small files


def test_the_file_of_the_version_is_written_anew(warehouse: Warehouse, quick: None) -> None:
    filled(warehouse)
    path = warehouse.root / "warehouse.json"
    content = path.read_bytes()
    for offset in range(len(content)):
        flip(path, offset, bit=offset % 7)
        assert refuse_other_version(warehouse.root) == VERSION, offset
    warehouse.verify()

    assert content == path.read_bytes()
    assert any("warehouse.json: was damaged or missing" in line for line in lines())


def test_a_damaged_list_of_parts_is_written_anew(warehouse: Warehouse, quick: None) -> None:
    before = filled(warehouse)
    path = warehouse.store.root / "list.json"
    listed = path.read_bytes()
    flip(path)
    assert any("list.json" in line for line in warehouse.damage())
    warehouse.publish()

    assert json.loads(listed)["parts"] == json.loads(path.read_bytes())["parts"]
    assert before == rows_of(warehouse)
    assert any("list.json: was damaged" in line for line in lines())


# what cannot be restored


def test_rows_that_nothing_restores_are_lost_until_they_come_or_are_accepted(
    warehouse: Warehouse, quick: None
) -> None:
    filled(warehouse)
    rows = rows_of(warehouse)["verdicts"]
    lost = rows_in(warehouse.root, "from verdicts where trial = 2")
    for n_lost in (20, 40):  # earlier losses stay
        warehouse.store.standing("verdicts")[1].unlink()
        warehouse.database.unlink()
        warehouse.publish()
        assert [n_lost] == [loss.n_rows for loss in warehouse.losses()]
    kind = "benchmark prbench, model a-model, judge a-judge, vintage base"
    assert f"40 rows of verdicts ({kind}) are lost" == warehouse.losses()[0].line

    warehouse.write(
        "verdicts", [{name: each[name] for name in TABLES["verdicts"].columns} for each in lost]
    )
    warehouse.publish()
    assert [loss.n_rows for loss in warehouse.losses()] == [20]
    assert set(rows_of(warehouse)["verdicts"]) < set(rows)
    warehouse.accept_losses()
    warehouse.verify()
    assert not warehouse.losses()


# the database


def test_every_flipped_bit_of_a_database_is_found(warehouse: Warehouse, monkeypatch: Patch) -> None:
    before = filled(warehouse)
    for number in range(4):
        warehouse.write("verdicts", verdicts_on(response(f"u{number}"), 900))
        warehouse.publish()
        assert is_database_whole(warehouse.database)
    assert before != (before := rows_of(warehouse))
    content = warehouse.database.read_bytes()
    chosen = random.Random(11)
    for _ in range(50):
        offset = chosen.randrange(len(content))
        flip(warehouse.database, offset, bit=chosen.randrange(8))
        assert not is_database_whole(warehouse.database), offset
        warehouse.database.write_bytes(content)
    for cut in (0, 1, 4_096, 12_288, len(content) // 2, len(content) - 262_144, len(content) - 1):
        warehouse.database.write_bytes(content[:cut])
        assert not is_database_whole(warehouse.database), cut


def test_a_damaged_database_is_refused_restores_nothing_and_is_built_anew_from_parts(
    warehouse: Warehouse, quick: None
) -> None:
    before = filled(warehouse)
    assert before == rows_of(
        warehouse
    )  # the published state is known, so the file is not read again
    for block in range(12_288, warehouse.database.stat().st_size - 64, 262_144):
        flip(warehouse.database, block + 4_000)
    flip(warehouse.store.standing("labels")[0])
    with pytest.raises(WarehouseError, match=one_line("`prbench aggregate` rebuilds it")) as caught:
        rows_of(warehouse)
    assert "is damaged" in str(caught.value)
    warehouse.verify()

    assert is_database_whole(warehouse.database)
    assert len(rows_of(warehouse)["labels"]) == 2
    assert [(loss.table, loss.n_rows) for loss in warehouse.losses()] == [("labels", 1)]
