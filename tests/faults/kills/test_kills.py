"""Runs that are killed, doubled, signalled, out of disk or time: nothing is lost, or paid again without need."""

import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.behaviours import Behaviour, HttpResponse, Request, is_judge_request, well_behaved
from tests.faults.kills.killing import Killing, provider
from tests.faults.kills.starting import Run, Stages, configured, recorded, started_stages, tables
from tests.faults.server import FaultServer
from tests.kit import rows_in, until
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kills", "judge"), [
    (3, {}),
    (2, {"kind": "decisions", "criteria_per_call": 3}),
    (2, {"criteria_per_call": 4}),
    pytest.param(10, {}, marks=pytest.mark.long),
])  # fmt: skip
def test_a_stage_that_is_killed_again_and_again_ends_as_if_undisturbed(
    tmp_path: Path, kills: int, judge: dict[str, Any]
) -> None:
    with provider() as server:
        configured(tmp_path, server.api_base, **judge)
        killing = Killing(tmp_path, server, started_stages().start)
        killing.kill(kills)
    assert killing.n_again <= 8 * kills  # those in flight


N_CALLS = 2 * 2 * 8 + 2 * 98
"""Two trials of two models on eight tasks; the responses of both trials are the same, and so are their verdicts."""
N_RESPONSES, N_ROWS = 32, 32 + 392


@pytest.fixture
def stages() -> Stages:
    return started_stages()


def taking(delay_s: float) -> Behaviour:
    return lambda request, number: HttpResponse(well_behaved(request, number).text, delay_s=delay_s)


def outcomes(warehouse: Path) -> list[str]:
    return [row["outcome"] for row in rows_in(warehouse, "select outcome from runs order by started_at")]


def is_complete(warehouse: Path) -> bool:
    rows = tables(warehouse)
    statuses = Counter(row["status"] for name in ("responses", "verdicts") for row in rows[name])
    return statuses.keys() == {"ok", "met", "unmet"} and (statuses["ok"], statuses.total()) == (N_RESPONSES, N_ROWS)


def assert_one_line(run: Run, *parts: str) -> None:
    assert 1 == run.code
    assert 1 == len(run.complaint.splitlines()), run.complaint
    assert all(part in run.complaint for part in ("prbench: ", *parts)), run.complaint


def test_two_runs_at_once_share_the_work_and_make_no_call_twice(stages: Stages, tmp_path: Path) -> None:
    with FaultServer(taking(0.05)) as server:
        data = configured(tmp_path, server.api_base)
        first = stages.start(tmp_path, data)
        until(lambda: len(server.book) > 5)
        second = stages.start(tmp_path, data)
        n_reads = 0
        while first.poll() is None or second.poll() is None:
            rows = rows_in(data, "select count(*) as n, count(distinct verdict_id) as n_ids from verdicts")
            assert rows[0]["n"] == rows[0]["n_ids"]
            n_reads += 1
        assert (0, 0) == (first.code, second.code), first.complaint + second.complaint
        assert N_CALLS == len(server.paid)
    assert n_reads > 2
    assert {1} == set(recorded(data).values())
    assert ["done", "done"] == outcomes(data)
    assert is_complete(data)


def test_a_run_goes_on_with_what_a_killed_one_at_its_side_had_in_hand(stages: Stages, tmp_path: Path) -> None:
    with FaultServer(taking(1.0)) as server:
        data = configured(tmp_path, server.api_base)
        first = stages.start(tmp_path, data)
        until(lambda: server.in_hand == 8)
        second = stages.start(tmp_path, data)
        until(lambda: len(second.members()) > 0 and server.in_hand > 8)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        server.behaviour = well_behaved
        assert 0 == second.wait(), second.complaint
        # What the killed run had in hand was paid and never came; all else once.
        assert len(server.paid) <= N_CALLS + 8
    assert {1} == set(recorded(data).values())
    assert is_complete(data)


@pytest.mark.long
def test_a_clock_that_jumps_back_between_two_runs_loses_and_doubles_nothing(stages: Stages, tmp_path: Path) -> None:
    def fails_at_times(request: Request, number: int) -> HttpResponse:
        text = request["messages"][0]["content"]
        if is_judge_request(request) and sum(map(ord, text)) % 3 == 0:
            return HttpResponse("no verdict")
        return well_behaved(request, number)

    with FaultServer(fails_at_times) as server:
        data = configured(tmp_path, server.api_base)
        assert 0 == stages.start(tmp_path, data).wait()
        failed = [row["verdict_id"] for row in tables(data)["verdicts"] if row["status"] == "parse_error"]
        assert len(failed) > 50
        server.behaviour = well_behaved
        n_calls = len(server.book)
        assert 0 == stages.start(tmp_path, data, clock_s=-3600.0).wait()
        assert is_complete(data)
        again = Counter(entry.digest for entry in server.entries[n_calls:])
        assert {1} == set(again.values())
        assert len(again) <= len(failed)
    assert ["done", "done"] == outcomes(data)


def test_a_disk_that_is_full_for_the_ledger_costs_no_recorded_reply(stages: Stages, tmp_path: Path) -> None:
    with FaultServer(taking(0.02)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data, file_bytes_when_calling=100_000)
        assert 1 == run.wait()
        assert_one_line(run, "calls.sqlite: cannot be written", "make room")
        n_recorded = recorded(data).total()
        assert 0 < n_recorded < N_CALLS
        lost = len(server.paid) - n_recorded
        assert lost <= 2 * 8  # those in flight, and those that began before all batches knew
        still = stages.start(tmp_path, data, file_bytes_at_start=4_096)  # the disk is still full
        assert 1 == still.wait()
        assert_one_line(still, "ledger")
        assert 0 == stages.start(tmp_path, data).wait()
        assert N_CALLS + lost == len(server.paid)
    assert {1} == set(recorded(data).values())
    assert is_complete(data)


def test_a_disk_that_is_full_for_a_part_costs_nothing_that_it_was_to_hold(stages: Stages, tmp_path: Path) -> None:
    with FaultServer() as server:
        data = configured(tmp_path, server.api_base)
        assert 0 == stages.start(tmp_path, data).wait()
        for table in ("responses", "verdicts"):  # as after a kill between the last reply and the first part
            shutil.rmtree(data / "parts" / table)
        forget_parts(Warehouse(data))
        run = stages.start(tmp_path, data, file_bytes_when_calling=4_096)
        assert 1 == run.wait()
        assert_one_line(run, "File too large")
        assert not list((data / "parts").glob("*/.*.tmp"))
        assert 0 == stages.start(tmp_path, data).wait()
        assert N_CALLS == len(server.paid)
    assert is_complete(data)
