"""Locks between processes."""

import os
from pathlib import Path

import pytest

from tests.warehouse.conftest import Start
from warehouse import Warehouse
from warehouse.errors import WarehouseBusy
from warehouse.locks import file_lock

HOLD = """
import sys
from warehouse import Warehouse

with Warehouse(sys.argv[1]).writing():
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
"""


def test_a_second_process_is_refused_in_one_line_that_names_the_first(warehouse: Warehouse, start: Start) -> None:
    process = start(HOLD, warehouse.root)
    assert process.stdout is not None
    assert "held\n" == process.stdout.readline()

    with pytest.raises(WarehouseBusy) as caught, warehouse.writing():
        pass

    assert f"process {process.pid} " in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_the_lock_is_free_after_its_holder_was_killed(warehouse: Warehouse, start: Start) -> None:
    process = start(HOLD, warehouse.root)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()

    with warehouse.writing():
        assert f"{os.getpid()}\n" == (warehouse.root / "run.lock").read_text(encoding="utf-8")


def test_the_lock_is_free_after_its_holder_has_finished(warehouse: Warehouse, start: Start) -> None:
    process = start(HOLD, warehouse.root)
    output, _ = process.communicate("go on\n")

    assert "held\nfree\n" == output
    with warehouse.writing():
        pass


def test_the_lock_is_free_after_its_holder_has_failed(tmp_path: Path) -> None:
    with pytest.raises(KeyError), file_lock(tmp_path / "lock", wait=False):
        raise KeyError

    with file_lock(tmp_path / "lock", wait=False):
        pass


def test_the_one_who_waits_gets_the_lock_when_it_is_free(warehouse: Warehouse, start: Start) -> None:
    process = start(HOLD, warehouse.root)
    assert process.stdout is not None
    process.stdout.readline()
    waiting = start(HOLD.replace("Warehouse(sys.argv[1]).writing()", "file_lock(sys.argv[1], wait=True)").replace(
        "from warehouse import Warehouse", "from pathlib import Path; from warehouse.locks import file_lock"
    ).replace("file_lock(sys.argv[1]", "file_lock(Path(sys.argv[1])"), warehouse.root / "run.lock")  # fmt: skip
    with pytest.raises(WarehouseBusy, match=str(process.pid)), warehouse.writing():
        pass
    process.communicate("go on\n")
    assert waiting.stdout is not None

    assert "held\n" == waiting.stdout.readline()


def test_locks_of_two_warehouses_do_not_know_each_other(tmp_path: Path) -> None:
    with Warehouse(tmp_path / "a").writing(), Warehouse(tmp_path / "b").writing():
        assert (tmp_path / "a" / "run.lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"
