"""Runs that are killed, doubled, signalled, out of disk or time: nothing is lost, or paid again without need."""

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.behaviours import Behaviour, HttpResponse, Request, is_judge_request, well_behaved
from tests.faults.kills.killing import MOST_COLD_GAP_S, MOST_GAP_S, Killing, provider
from tests.faults.kills.starting import Run, Stages, configured, recorded, started_stages, tables
from tests.faults.server import FaultServer
from tests.kit import rows_in
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("kills", "most_gap_s", "fewest_again"),
    [
        (4, MOST_COLD_GAP_S, 0),
        # How soon a reply is committed, and that a kill met one in flight, is for quiet cores.
        pytest.param(10, MOST_GAP_S, 1, marks=pytest.mark.long),
    ],
)
def test_a_stage_that_is_killed_again_and_again_loses_no_recorded_reply_and_ends_as_if_undisturbed(
    tmp_path: Path, kills: int, most_gap_s: float, fewest_again: int
) -> None:
    with provider() as server:
        configured(tmp_path, server.api_base)
        killing = Killing(tmp_path, server, started_stages().start, most_gap_s=most_gap_s)
        figures = killing.kill(kills)
    assert kills == figures.kills
    assert fewest_again <= figures.again <= kills * 8
    assert figures.replies >= 228


N_CALLS = 2 * 2 * 8 + 2 * 98
"""Two trials of two models on eight tasks; the responses of both trials are the same, and so are their verdicts."""
N_RESPONSES, N_ROWS = 32, 32 + 392


@pytest.fixture
def stages() -> Stages:
    return started_stages()


def taking(delay_s: float) -> Behaviour:
    return lambda request, number: HttpResponse(well_behaved(request, number).text, delay_s=delay_s)


def wait_for(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come so far"
        time.sleep(0.01)


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


def test_two_runs_at_once_share_the_work_and_no_call_is_made_twice_while_readers_read(
    stages: Stages, tmp_path: Path
) -> None:
    with FaultServer(taking(0.05)) as server:
        data = configured(tmp_path, server.api_base)
        first = stages.start(tmp_path, data)
        wait_for(lambda: len(server.book) > 5)
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
        wait_for(lambda: server.in_hand == 8)
        second = stages.start(tmp_path, data)
        wait_for(lambda: len(second.members()) > 0 and server.in_hand > 8)
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
        n_calls = len(server.book)
        assert 0 == stages.start(tmp_path, data, clock_s=-7200.0).wait()
        assert len(server.book) == n_calls
    assert ["done", "done", "done"] == outcomes(data)
    assert is_complete(data)


@pytest.mark.parametrize("is_resumed_at_once", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_disk_that_is_full_for_the_ledger_ends_a_run_with_one_line_and_costs_no_recorded_reply(
    stages: Stages, tmp_path: Path, is_resumed_at_once: bool
) -> None:
    with FaultServer(taking(0.02)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data, file_bytes_when_calling=100_000)
        assert 1 == run.wait()
        assert_one_line(run, "calls.sqlite: cannot be written", "make room")
        n_recorded = recorded(data).total()
        assert 0 < n_recorded < N_CALLS
        lost = len(server.paid) - n_recorded
        assert lost <= 2 * 8  # those in flight, and those that began before all batches knew
        if not is_resumed_at_once:  # the disk is still full
            still = stages.start(tmp_path, data, file_bytes_at_start=4_096)
            assert 1 == still.wait()
            assert_one_line(still, "ledger")
        assert 0 == stages.start(tmp_path, data).wait()
        assert len(server.paid) == N_CALLS + lost
    assert {1} == set(recorded(data).values())
    assert is_complete(data)


def test_a_disk_that_is_full_for_a_part_ends_a_run_with_one_line_and_what_it_was_to_hold_is_not_paid_again(
    stages: Stages, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_ends_a_run_within_seconds_though_its_calls_take_long(
    stages: Stages, tmp_path: Path, stop: signal.Signals
) -> None:
    with FaultServer(taking(60)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data)
        wait_for(lambda: server.in_hand == 8)
        assert 1 == len(run.members())
        before_s = time.monotonic()
        os.kill(run.pid, stop)
        assert 130 == run.wait(), run.complaint
        assert time.monotonic() - before_s < 30
        assert "interrupted: finished work is kept; run the same command again to continue\n" == run.complaint
        wait_for(lambda: run.members() == [], 2)
    assert ["interrupted"] == outcomes(data)
