"""Readers of the published database in one process: each has its own state, and releases it."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from tests.kit import row
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("quick")


def publish(warehouse: Warehouse, run_id: str):
    warehouse.write("runs", [row("runs", run_id=run_id)])
    warehouse.publish()


def held_files(folder: Path) -> list[str]:
    """The open files of this process in a folder, including deleted ones."""
    paths = []
    for link in Path("/proc/self/fd").iterdir():
        # The descriptor of this listing is closed already.
        with contextlib.suppress(OSError):
            paths.append(str(link.readlink()))
    return [path for path in paths if path.startswith(str(folder))]


def test_readers_beside_each_other_see_the_state_in_which_they_were_opened(warehouse):
    readers = []
    for number in range(4):
        publish(warehouse, f"r{number}")
        readers.append(warehouse.reader())

    n_runs = [reader.value("select count(*) from runs") for reader in readers]
    assert n_runs == [1, 2, 3, 4]
    for reader in readers:
        reader.close()
    for _ in range(3):
        with warehouse.reader() as reader:
            assert reader.value("select count(*) from runs") == 4


def test_several_threads_can_ask_one_reader_at_once(warehouse):
    publish(warehouse, "r")

    def ask(number):
        query = f"select {number} + count(x) from runs, range(20000) as numbers (x)"
        return reader.value(query)

    with warehouse.reader() as reader, ThreadPoolExecutor(4) as pool:
        values = list(pool.map(ask, range(40)))

    assert values == list(range(20_000, 20_040))


def test_a_closed_reader_holds_no_file_and_cannot_be_used(warehouse):
    publish(warehouse, "r")
    reader = warehouse.reader()
    assert held_files(warehouse.root)
    reader.close()
    reader.close()

    assert held_files(warehouse.root) == []
    with pytest.raises(duckdb.Error), warehouse.reader():
        reader.value("select count(*) from runs")


def test_the_rows_of_a_relation_are_selected_by_the_values_of_their_columns(
    warehouse,
):
    night = row("runs", run_id="b", night="2026-11-01")
    warehouse.write("runs", [night, row("runs", run_id="a")])
    warehouse.publish()

    with warehouse.reader() as reader:
        assert reader.select("runs", "run_id") == [{"run_id": "a"}, {"run_id": "b"}]
        assert reader.select("runs", "run_id", night="2026-11-01") == [
            {"run_id": "b"}
        ]
        assert reader.select("runs", "run_id", night=None) == [{"run_id": "a"}]
        runs = reader.select(
            "runs",
            order="run_id desc",
            run_id=["a", "b"],
        )
    assert [run["run_id"] for run in runs] == ["b", "a"]
