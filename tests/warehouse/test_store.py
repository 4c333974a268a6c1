"""Parts: immutable files that appear whole or not at all."""

import hashlib
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.kit import at, one_line, response
from tests.warehouse.parts import stored
from warehouse import Warehouse, WarehouseError


def visible(warehouse: Warehouse) -> list[Path]:
    return sorted(
        path
        for path in warehouse.store.root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    )


def test_a_part_is_named_by_its_content(warehouse):
    warehouse.write("responses", [response("t")])

    (path,) = visible(warehouse)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.name.endswith(f"-{digest[:24]}.parquet")


def test_parts_are_in_the_order_in_which_they_were_written(warehouse):
    warehouse.write("responses", [response("t")])
    [first_part] = warehouse.store.current_parts("responses")
    time.sleep(0.002)  # names begin with the time in milliseconds
    warehouse.write("responses", [response("u")])

    parts = warehouse.store.current_parts("responses")
    assert parts[0] == first_part
    assert len(parts) == 2


def test_rows_come_back_as_they_were_written(warehouse):
    rows = [
        response("t", created_at=at(0.25)),
        response("ü😀\n", error="a\x00b"),
        response("", cost_usd=1e-300),
    ]

    warehouse.write("responses", rows)

    assert stored(warehouse.store, "responses") == rows


MISFITS: dict[str, dict[str, Any]] = {
    "a text for a number": {"trial": "first"},
    "half a whole number": {"trial": 1.5},
    "a number for a text": {"text": 1},
    "a number for a flag": {"degraded": 1},
    "a text for a time": {"created_at": "today"},
    "a number too large": {"trial": 2**70},
    "a lone surrogate": {"text": "\ud83d"},
    "a list for a text": {"text": ["a"]},
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_row_that_does_not_fit_the_contract_is_refused_in_one_line(warehouse, case):
    with pytest.raises(WarehouseError) as caught:
        warehouse.write("responses", [response("t"), response("u") | MISFITS[case]])

    assert str(caught.value).startswith("responses: ")
    assert len(str(caught.value).splitlines()) == 1
    assert visible(warehouse) == []


@pytest.mark.parametrize("change", ["lacks", "adds"])
def test_a_row_with_other_columns_is_refused_with_their_names(warehouse, change):
    row = response("t")
    wrong = {
        "lacks": {name: row[name] for name in row.keys() - {"vintage"}},
        "adds": row | {"vintage2": 1},
    }[change]

    with pytest.raises(WarehouseError, match="vintage"):
        warehouse.write("responses", [wrong])


def test_a_disk_that_refuses_is_told_in_one_line(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "responses").write_text("in the way")

    with pytest.raises(WarehouseError, match=one_line()):
        Warehouse(tmp_path).write("responses", [response("t")])


WRITE_HALF = """
import sys
from tests.kit import response
from warehouse import Warehouse, files

def wait(path):
    print("not yet visible", flush=True)
    sys.stdin.read()

warehouse = Warehouse(sys.argv[1])
warehouse.write("responses", [response("t")])
files.sync = wait
warehouse.write("responses", [response("u")])
"""
"""Writes a part, and a second one up to the moment at which it becomes visible."""


def test_a_kill_in_the_midst_of_a_write_leaves_whole_parts_and_nothing_half(
    warehouse, start
):
    process = start(WRITE_HALF, warehouse.root)
    assert process.stdout.readline() == "not yet visible\n"
    process.kill()
    process.wait()

    assert len(list(warehouse.store.root.rglob(".*.tmp"))) == 1
    [part] = visible(warehouse)
    assert warehouse.store.current_parts("responses") == [part]
    assert pq.read_table(part).num_rows == 1
