"""Versions of a warehouse: one of another version is refused, and a database by another version is
reported.
"""

import duckdb
import pytest

from tests.kit import one_line, row
from tests.warehouse.parts import published, put
from warehouse import WarehouseError, WarehouseOutdated, refuse_other_version
from warehouse.files import read_sealed, write_sealed


def test_a_new_warehouse_has_the_current_version_when_it_is_first_written(warehouse):
    assert refuse_other_version(warehouse.root) is None
    warehouse.write("runs", [row("runs")])

    assert read_sealed(warehouse.root / "warehouse.json") == {"version": 4}


def test_a_warehouse_of_november_is_opened_as_it_is(warehouse):
    warehouse.write("runs", [row("runs", run_id="then")])
    warehouse.publish()
    write_sealed(warehouse.root / "warehouse.json", {"parser": 2, "version": 4})
    content = (warehouse.root / "warehouse.json").read_bytes()

    with warehouse.writing():
        warehouse.verify()
        warehouse.write("runs", [row("runs", run_id="now")])
        warehouse.publish()
    assert [run["run_id"] for run in published(warehouse, "runs")] == ["now", "then"]
    assert (warehouse.root / "warehouse.json").read_bytes() == content


ACCESSES = {
    "writing": lambda warehouse: warehouse.writing().__enter__(),
    "write": lambda warehouse: warehouse.write("runs", [row("runs")]),
    "publish": lambda warehouse: warehouse.publish(),
    "reader": lambda warehouse: warehouse.reader(),
    "compact": lambda warehouse: warehouse.compact(),
}


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("version", [9, 3, None])
def test_another_version_is_refused_in_one_line(warehouse, access, version):
    put(warehouse.root, "runs", 1, [row("runs")])
    if version is None:
        (warehouse.root / "warehouse.json").unlink()
    else:
        write_sealed(warehouse.root / "warehouse.json", {"version": version})
    paths = sorted(warehouse.root.rglob("*"))

    reason = f"version {version or 'unknown'}, this one reads 4"
    with pytest.raises(WarehouseError, match=one_line(reason)):
        ACCESSES[access](warehouse)

    assert sorted(warehouse.root.rglob("*")) == paths


@pytest.mark.parametrize("content", ["", "{}", '{"version": 2}', "[2]"])
def test_a_version_that_cannot_be_told_is_told_in_one_line(warehouse, content):
    warehouse.root.mkdir()
    (warehouse.root / "warehouse.json").write_text(content)

    with (
        pytest.raises(WarehouseError, match=one_line("warehouse.json: is damaged")),
        warehouse.writing(),
    ):
        pass


# databases that another version of the code published


@pytest.mark.parametrize(
    "change",
    ["update published_from set stamp = 'other'", "drop table published_from"],
)
def test_another_code_s_database_is_told_in_a_line_and_renewed_by_publishing(
    warehouse, change
):
    warehouse.write("runs", [row("runs", run_id="r")])
    warehouse.publish()
    with duckdb.connect(str(warehouse.database)) as connection:
        connection.execute(change)

    cause = f"{warehouse.database}: was published by another version of prbench"
    advice = "`prbench aggregate` renews it without a model call"
    with pytest.raises(WarehouseOutdated, match=rf"^{cause}; {advice}$"):
        warehouse.reader()
    warehouse.publish()
    assert [run["run_id"] for run in published(warehouse, "runs")] == ["r"]
