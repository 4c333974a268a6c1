"""Parts: immutable files that appear whole or not at all."""

import hashlib
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.kit import at, one_line, response, until
from warehouse import Warehouse, WarehouseError


def visible(warehouse: Warehouse) -> list[Path]:
    return sorted(
        path
        for path in warehouse.store.root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    )


def test_a_part_is_named_by_its_content(warehouse):
    name = warehouse.write("responses", [response("t")])
    (path,) = visible(warehouse)
    assert str(name).endswith(
        f"-{hashlib.sha256(path.read_bytes()).hexdigest()[:24]}.parquet"
    )

    time.sleep(0.002)  # names begin with the time in milliseconds
    second = warehouse.write("responses", [response("u")])
    assert [name, second] == [
        part.name for part in warehouse.store.standing("responses")
    ]


def test_rows_come_back_as_they_were_written(warehouse):
    rows = [
        response("t", created_at=at(0.25)),
        response("ü😀\n", error="a\x00b"),
        response("", cost_usd=1e-300),
    ]
    name = warehouse.write("responses", rows)

    assert (
        rows
        == pq.read_table(warehouse.store.root / "responses" / str(name)).to_pylist()
    )


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
        "lacks": {k: v for k, v in row.items() if k != "vintage"},
        "adds": row | {"vintage2": 1},
    }[change]

    with pytest.raises(WarehouseError, match="vintage"):
        warehouse.write("responses", [wrong])


def test_a_disk_that_refuses_is_told_in_one_line(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "responses").write_text("in the way", encoding="utf-8")

    with pytest.raises(WarehouseError, match=one_line()):
        Warehouse(tmp_path).write("responses", [response("t")])


WRITE_FOR_EVER = """
import os, sys
from tests.kit import response
from warehouse import Warehouse

warehouse = Warehouse(sys.argv[1])
for i in range(10_000):
    noise = [response(f"t{i}-{j}", error=os.urandom(50_000).hex()) for j in range(200)]
    warehouse.write("responses", noise)
"""


def test_a_kill_in_the_midst_of_a_write_leaves_whole_parts_and_nothing_half(
    warehouse, start
):
    folder = warehouse.root / "parts" / "responses"
    for _ in range(5):
        process = start(WRITE_FOR_EVER, warehouse.root)
        until(lambda: list(folder.glob(".*.tmp")), process, every_s=0.0005)
        process.kill()
        process.wait()
        if list(folder.glob(".*.tmp")):
            break

    # The write was interrupted: it left a temporary file, but no visible part.
    assert list(folder.glob(".*.tmp")) != []
    assert [200] * len(visible(warehouse)) == [
        pq.read_table(path).num_rows for path in visible(warehouse)
    ]
    assert visible(warehouse) == warehouse.store.standing("responses")
