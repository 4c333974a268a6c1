"""Locks between processes."""

import os
import subprocess
from contextlib import AbstractContextManager

import pytest

from tests.warehouse.conftest import Start
from warehouse import Warehouse
from warehouse.errors import WarehouseBusy

HOLD = """
import sys
from warehouse import Warehouse

warehouse = Warehouse(sys.argv[1])
with {lock}:
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
"""
A_RUN = HOLD.format(lock="warehouse.writing()")
A_NIGHT = HOLD.format(lock="warehouse.only_one('night', wait=False)")
ALIVE = HOLD.format(lock="warehouse.living('a run/1')")
Process = subprocess.Popen[str]


def holding(start: Start, script: str, warehouse: Warehouse) -> Process:
    process = start(script, warehouse.root)
    assert process.stdout.readline() == "held\n"
    return process


def kill(process: Process):
    process.kill()
    process.wait()


def refusal(lock: AbstractContextManager[None]) -> str:
    with pytest.raises(WarehouseBusy) as caught, lock:
        pass
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_several_runs_are_at_work_at_once_and_who_wants_to_be_alone_waits(
    warehouse, start
):
    first = holding(start, A_RUN, warehouse)
    second = holding(start, A_RUN, warehouse)
    with warehouse.writing():
        at_work = ", ".join(map(str, sorted([os.getpid(), first.pid, second.pid])))
        line = refusal(warehouse.alone())
    assert f"processes {at_work} are at work on this warehouse; wait" in line
    second.communicate("go on\n")
    line = refusal(warehouse.alone())
    assert f"process {first.pid} is at work on this warehouse; wait" in line
    kill(first)

    with warehouse.alone():
        pass
    with warehouse.writing():
        pass


def test_a_run_is_refused_in_one_line_while_somebody_is_alone(warehouse, start):
    process = holding(start, HOLD.format(lock="warehouse.alone()"), warehouse)

    for lock in (warehouse.writing(), warehouse.alone()):
        assert f"process {process.pid} is at work" in refusal(lock)
    kill(process)
    with warehouse.writing():
        pass


def test_there_is_one_night_beside_whom_runs_go_on_and_who_waits_is_next(
    warehouse, start
):
    process = holding(start, A_NIGHT, warehouse)
    waiting = start(A_NIGHT.replace("wait=False", "wait=True"), warehouse.root)

    line = refusal(warehouse.only_one("night", wait=False))
    assert f"process {process.pid} is at work" in line
    with warehouse.writing(), warehouse.only_one("another", wait=False):
        pass
    kill(process)
    assert waiting.stdout.readline() == "held\n"


def test_a_killed_run_can_be_told_from_one_that_goes_on(warehouse, start):
    process = holding(start, ALIVE, warehouse)
    assert warehouse.living_runs() == ["a run/1"]
    kill(process)

    assert warehouse.living_runs() == []
    assert list((warehouse.root / "living").iterdir()) == []


def test_the_runs_that_go_on_are_known_before_anything_of_them_is_stored(warehouse):
    assert warehouse.living_runs() == []
    with warehouse.writing(), warehouse.living("a run/1"), warehouse.living("b"):
        assert warehouse.living_runs() == ["a run/1", "b"]
    assert warehouse.living_runs() == []
    assert list((warehouse.root / "living").iterdir()) == []
