"""Parts and databases with flipped bits, cut short, deleted or swapped: found, reported, and
restored.
"""

import json
import random
import resource
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit import Row, at, one_line, response, row, rows_in, verdict
from tests.warehouse.parts import DAMAGES, flip, rows_of, without_marts
from warehouse import Warehouse, WarehouseError
from warehouse.columns import COLUMNS
from warehouse.files import is_database_whole, is_whole, pop_notices
from warehouse.parts import VERSION, refuse_other_version
from warehouse.tables import TABLES, StoredTable

pytestmark = pytest.mark.slow
PublishedRows = dict[str, list[tuple[Any, ...]]]


def reported_damage() -> str:
    return "\n".join(notice.line for notice in pop_notices())


def verdicts_on(judged: Row, n_verdicts: int) -> list[Row]:
    verdicts = []
    for number in range(n_verdicts):
        criterion = {"criterion_id": f"c{number}", "content_hash": f"h{number}"}
        verdicts.append(verdict(judged, criterion, float(number % 2)))
    return verdicts


@pytest.fixture
def filled(warehouse: Warehouse, quick: None) -> Warehouse:
    """A published warehouse with some parts of verdicts, responses, runs and labels."""
    for trial in (1, 2, 3):
        judged = response("t", trial=trial)
        warehouse.write("responses", [judged])
        warehouse.write("verdicts", verdicts_on(judged, 20))
        latest = row("runs", run_id="r", command=f"command {trial}")
        warehouse.write("runs", [latest, row("runs", run_id=f"r{trial}")])
        label = row(
            "labels",
            field="Law",
            kind="k",
            label=f"label {trial}",
        )
        warehouse.write("labels", [label])
    warehouse.publish()
    return warehouse


def rebuilt_rows(warehouse: Warehouse) -> PublishedRows:
    """The rows that a build from the parts alone gives."""
    copy = Warehouse(warehouse.root.with_name("copy"))
    shutil.rmtree(copy.root, ignore_errors=True)
    shutil.copytree(warehouse.root, copy.root)
    copy.database.unlink()
    copy.publish()
    return rows_of(copy)


@pytest.mark.parametrize("name", ["the version", "a part", "the database"])
def test_where_too_many_files_are_open_that_is_the_cause_and_nothing_counts_as_damaged(
    filled,
    name,
):
    part = filled.store.current_parts("verdicts")[0]
    checks = {
        "the version": lambda: refuse_other_version(filled.root),
        "a part": lambda: is_whole(part),
        "the database": lambda: is_database_whole(filled.database),
    }
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)

    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard_limit))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            checks[name]()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))

    assert reported_damage() == ""


VALUES_BY_TYPE = {
    pa.string(): "text",
    pa.int64(): 7,
    pa.float64(): 0.5,
    pa.bool_(): True,
}


def row_of(table: StoredTable, part: int, number: int) -> Row:
    """A row of any table, with a key of its own."""
    values = {}
    for name in table.columns:
        value_type = COLUMNS[name].type
        values[name] = VALUES_BY_TYPE.get(value_type)
        if name in table.key and value_type == pa.string():
            values[name] = f"{part}-{number}"
    # Only the last response of each part is removed: the others are newer than their removals.
    is_old_removal = table.name == "removals" and number < 4
    if "created_at" in values:
        values["created_at"] = at(-1) if is_old_removal else at(0)
    if "status" in values:
        values["status"] = "ok"
    # A batch that is not retracted.
    if "import_batch" in values and table.name != "retractions":
        is_key = "import_batch" in table.key
        values["import_batch"] = f"kept {part}-{number}" if is_key else None
    return values


@pytest.fixture
def full(warehouse: Warehouse, monkeypatch) -> Warehouse:
    """A published warehouse with two parts of every table."""
    without_marts(monkeypatch)
    for part in range(2):
        for table in TABLES.values():
            rows = [row_of(table, part, number) for number in range(5)]
            warehouse.write(table.name, rows)
    warehouse.publish()
    assert all(rows_of(warehouse).values())
    return warehouse


@pytest.mark.long
@pytest.mark.parametrize("damage", ["deleted", "a flipped bit", "cut short"])
def test_damaged_parts_of_any_table_are_restored(full, damage):
    dice = random.Random(8)
    rows = rows_of(full)
    parts = {name: dice.choice(full.store.current_parts(name)) for name in TABLES}
    for part in parts.values():
        if damage == "a flipped bit":
            flip(
                part,
                dice.randrange(part.stat().st_size),
                bit=dice.randrange(8),
            )
        else:
            DAMAGES[damage](part)

    assert len(full.damage()) >= len(TABLES)
    full.verify()

    report = reported_damage()
    assert rows_of(full) == rows
    assert "restored from the last published database" in report
    for name, part in parts.items():
        assert part.name in report
        is_set_aside = (full.root / "damaged" / name / part.name).exists()
        assert is_set_aside == (damage != "deleted")
    assert rebuilt_rows(full) == rows
    assert full.losses() == []
    full.verify()
    assert reported_damage() == ""


def test_rows_that_came_after_a_damaged_part_stand_before_its_restored_ones(filled):
    flip(filled.store.current_parts("runs")[-1])
    filled.write("runs", [row("runs", run_id="r", command="newer")])

    filled.verify()

    commands = rows_in(filled.root, "select command from runs where run_id = 'r'")
    assert commands == [{"command": "newer"}]
    assert len(rows_of(filled)["runs"]) == 4


def test_a_publication_verifies_the_parts_that_it_adds_and_verify_all_of_them(filled):
    published = filled.store.current_parts("labels")[0]
    flip(published)
    filled.write("labels", [row("labels", field="Law", kind="k", label="newer")])
    filled.write("runs", [row("runs", run_id="damaged at once")])
    added = filled.store.current_parts("runs")[-1]
    flip(added)

    filled.publish()

    assert f"{added}: is damaged" in reported_damage()
    assert published.exists()
    assert len(rows_of(filled)["labels"]) == 4

    filled.verify()

    assert f"{published}: is damaged" in reported_damage()
    assert len(rows_of(filled)["labels"]) == 4


def test_a_publication_after_a_retraction_verifies_the_responses_that_it_reads_again(
    filled,
):
    filled.write(
        "retractions", [row("retractions", import_batch="b", is_retracted=True)]
    )
    filled.publish()
    part = filled.store.current_parts("responses")[0]
    part.write_bytes(part.read_bytes()[:100])
    filled.write("verdicts", verdicts_on(response("t", trial=1), 21)[20:])

    filled.publish()

    assert f"{part}: is damaged" in reported_damage()
    assert len(rows_of(filled)["responses"]) == 3


def failed_rows(warehouse: Warehouse) -> list[Path]:
    """The parts of a decision and of a later failure with the same key."""
    for status in ("timeout", "ok", "refused"):
        later = response(status, status="timeout")
        warehouse.write("responses", [response("t", status=status), later])
    warehouse.publish()
    return warehouse.store.current_parts("responses")[1:]


def last_of_its_kind(warehouse: Warehouse) -> list[Path]:
    """A merged part whose content equals that of the last part that it replaced."""
    for outcome in ("running", "done") * 2:
        warehouse.write("runs", [row("runs", run_id="r", outcome=outcome)])
    warehouse.publish()
    warehouse.compact()
    return warehouse.store.current_parts("runs")


@pytest.mark.parametrize("fill", [failed_rows, last_of_its_kind])
def test_restored_rows_count_as_before(warehouse, quick, fill):
    parts = fill(warehouse)
    rows = rows_of(warehouse)
    for part in parts:
        flip(part)

    warehouse.verify()

    assert rows_of(warehouse) == rows
    assert rebuilt_rows(warehouse) == rows
    assert warehouse.losses() == []


# merged parts


@pytest.mark.parametrize("n_compactions", [0, 2])
def test_a_part_damaged_before_a_compaction_is_restored(filled, n_compactions):
    rows = rows_of(filled)
    for _ in range(n_compactions):
        filled.compact()
    part = filled.store.current_parts("verdicts")[0]
    flip(part)

    filled.compact()

    assert part.name in reported_damage()
    assert rows_of(filled) == rows
    assert rebuilt_rows(filled) == rows


# small files


def test_the_file_of_the_version_is_written_anew(filled):
    path = filled.root / "warehouse.json"
    content = path.read_bytes()
    for offset in range(len(content)):
        flip(path, offset, bit=offset % 7)
        assert refuse_other_version(filled.root) == VERSION, offset

    filled.verify()

    assert path.read_bytes() == content
    assert "warehouse.json: was damaged or missing" in reported_damage()


def test_a_damaged_list_of_parts_is_written_anew(filled):
    rows = rows_of(filled)
    path = filled.store.root / "list.json"
    listing = json.loads(path.read_bytes())
    flip(path)

    damage = "\n".join(filled.damage())
    filled.publish()

    assert "list.json" in damage
    assert "list.json: was damaged" in reported_damage()
    assert json.loads(path.read_bytes())["parts"] == listing["parts"]
    assert rows_of(filled) == rows


def test_a_missing_part_is_named_though_the_list_of_parts_is_damaged(filled):
    rows_of(filled)
    flip(filled.store.root / "list.json")
    part = filled.store.current_parts("labels")[0]
    part.unlink()

    assert part.name in "\n".join(filled.damage())


# what cannot be restored


def lose_verdicts(warehouse: Warehouse):
    """Lose a part together with the database, so that nothing has its rows."""
    warehouse.store.current_parts("verdicts")[1].unlink()
    warehouse.database.unlink()
    warehouse.publish()


def test_rows_that_nothing_restores_are_lost_in_addition_to_earlier_ones(filled):
    lose_verdicts(filled)
    assert [loss.n_rows for loss in filled.losses()] == [20]

    lose_verdicts(filled)
    (loss,) = filled.losses()
    kind = "benchmark prbench, model a-model, judge a-judge, vintage base"
    assert loss.line == f"40 rows of verdicts ({kind}) are lost"


def test_lost_rows_that_are_written_again_are_lost_no_more(filled):
    verdicts = rows_of(filled)["verdicts"]
    lose_verdicts(filled)

    filled.write("verdicts", verdicts_on(response("t", trial=2), 20))
    filled.publish()

    assert filled.losses() == []
    assert len(rows_of(filled)["verdicts"]) == len(verdicts)


def test_accepted_losses_are_losses_no_more(filled):
    lose_verdicts(filled)

    filled.accept_losses()
    filled.verify()

    assert filled.losses() == []


# the database


def test_every_flipped_bit_of_a_database_is_found(filled):
    content = filled.database.read_bytes()
    dice = random.Random(11)

    assert is_database_whole(filled.database)
    for _ in range(50):
        offset = dice.randrange(len(content))
        flip(
            filled.database,
            offset,
            bit=dice.randrange(8),
        )
        assert not is_database_whole(filled.database), offset
        filled.database.write_bytes(content)


def test_a_database_that_is_cut_short_is_found(filled):
    content = filled.database.read_bytes()
    n_bytes = len(content)

    for n_left in (0, 1, 4_096, 12_288, n_bytes // 3, n_bytes // 2, n_bytes - 1):
        filled.database.write_bytes(content[:n_left])
        assert not is_database_whole(filled.database), n_left


def test_no_publication_fails_because_a_database_was_damaged_during_the_run(filled):
    content = filled.database.read_bytes()
    filled.write("labels", [row("labels", field="Law", kind="k", label="newer")])
    filled.write("verdicts", verdicts_on(response("t", trial=1), 21)[20:])

    for block in range(12_288, len(content) - 64, 262_144):
        filled.database.write_bytes(content)
        flip(filled.database, block + 4_000)
        filled.publish()

    assert "was damaged; it is rebuilt from the parts" in reported_damage()


def test_a_damaged_database_is_refused_restores_nothing_and_is_built_anew_from_parts(
    filled,
):
    rows_of(filled)  # the published state is known, so the file is not read again
    for block in range(12_288, filled.database.stat().st_size - 64, 262_144):
        flip(filled.database, block + 4_000)
    flip(filled.store.current_parts("labels")[0])

    reason = "is damaged; `prbench aggregate` rebuilds it"
    with pytest.raises(WarehouseError, match=one_line(reason)):
        rows_of(filled)
    filled.verify()

    assert is_database_whole(filled.database)
    assert len(rows_of(filled)["labels"]) == 2
    (loss,) = filled.losses()
    assert loss.table == "labels"
    assert loss.n_rows == 1
