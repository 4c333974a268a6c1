"""Publishing: the parts become one consistent file, whatever happened before and whoever reads
it.
"""

import re
import time
from typing import Any

import pytest

import sql
from tests.kit import row, rows_in, values_in
from tests.warehouse.parts import put_of_old
from warehouse import Warehouse
from warehouse.tables import TABLES


def write_run(warehouse: Warehouse, run_id: str, command: str = "run"):
    """Write a part that is certainly newer than earlier ones: names begin with the time in
    milliseconds.
    """
    time.sleep(0.002)
    warehouse.write("runs", [row("runs", run_id=run_id, command=command)])


def runs(warehouse: Warehouse, column: str = "run_id") -> list[Any]:
    warehouse.publish()
    rows = rows_in(warehouse.root, f"select {column} from runs order by all")
    return [run[column] for run in rows]


def test_content_that_is_written_again_is_the_newest(warehouse, quick):
    for command in ("first", "second", "first"):
        write_run(warehouse, "r", command)

    assert runs(warehouse, "command") == ["first"]


PUBLISH_HALF = """
import sys
from warehouse import Warehouse, publish

def wait():
    print("built", flush=True)
    sys.stdin.read()

publish.refuse_if_lost = wait
Warehouse(sys.argv[1]).publish()
"""
"""Publishes up to the moment at which the new database replaces the old one."""


def test_a_kill_while_publishing_leaves_the_file_and_the_next_one_whole(
    warehouse, start
):
    write_run(warehouse, "r")
    warehouse.publish()
    content = warehouse.database.read_bytes()
    write_run(warehouse, "s")
    process = start(PUBLISH_HALF, warehouse.root)
    assert process.stdout.readline() == "built\n"
    process.kill()
    process.wait()

    assert warehouse.database.read_bytes() == content
    assert runs(warehouse) == ["r", "s"]


def test_a_path_with_quotes_and_spaces_is_a_path(tmp_path, quick):
    warehouse = Warehouse(tmp_path / 'it\'s "here" [1]*')
    write_run(warehouse, "r")

    assert runs(warehouse) == ["r"]


PUBLISH_OWN = """
import sys
import pytest
from tests.kit import row
from tests.warehouse.parts import without_models
from warehouse import Warehouse
without_models(pytest.MonkeyPatch())
for i in range(3):
    Warehouse(sys.argv[1]).write("runs", [row("runs", run_id=f"{sys.argv[2]}-{i}")])
    Warehouse(sys.argv[1]).publish()
"""


@pytest.mark.slow
def test_two_processes_that_publish_at_once_lose_nothing(warehouse, quick, start):
    processes = [start(PUBLISH_OWN, warehouse.root, name) for name in ("a", "b")]

    assert [process.wait(120) for process in processes] == [0, 0]
    assert runs(warehouse) == ["a-0", "a-1", "a-2", "b-0", "b-1", "b-2"]


def test_a_part_of_an_earlier_version_is_read_and_merged_by_column_names(
    warehouse, quick
):
    warehouse.write("runs", [row("runs", run_id="now", command="judge")])
    put_of_old(warehouse.root)
    query = "select run_id, command, outcome from runs order by run_id"
    for use in (warehouse.publish, warehouse.compact):
        use()
        rows = values_in(warehouse.root, query)
        assert rows == [("now", "judge", None), ("then", "run", None)]


def test_rows_about_runs_wait_for_the_next_result(warehouse, quick):
    warehouse.write("labels", [row("labels", label="a")])
    warehouse.publish_results()
    write_run(warehouse, "r")
    warehouse.publish_results()
    assert rows_in(warehouse.root, "from runs") == []

    warehouse.write("labels", [row("labels", label="b")])
    warehouse.publish_results()

    assert len(rows_in(warehouse.root, "from runs")) == 1


def test_each_model_reads_only_the_checks_that_make_its_rows_change():
    partly_read = [
        name for name, table in TABLES.items() if table.models_read != "true"
    ]

    assert partly_read == ["checks"]
    for model in sql.models():
        n_sources = len(re.findall(r"\b(?:from|join)\s+checks\b", model.query))
        n_conditions = model.query.count(f"where {TABLES['checks'].models_read}")
        assert n_conditions == n_sources, model.name
