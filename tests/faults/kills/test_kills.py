"""Runs that are killed, doubled, signalled, out of disk or time: nothing is lost, or paid again without need."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import spend_in
from tests.faults.answers import Answer, Behaviour, Request, is_judging, well_behaved
from tests.faults.kills.killing import MOST_COLD_GAP_S, MOST_GAP_S, Killing, provider
from tests.faults.kills.starting import ROOT, Run, Stages, configured, recorded, started_stages, tables
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
    assert figures.kills == kills
    assert fewest_again <= figures.again <= kills * 8
    assert figures.answers >= 228


N_CALLS = 2 * 2 * 8 + 2 * 98
"""Two trials of two models on eight tasks; the answers of both trials are the same, and so are their judgings."""
N_RESPONSES, N_VERDICTS = 32, 392


@pytest.fixture
def stages() -> Stages:
    return started_stages()


def taking(delay_s: float) -> Behaviour:
    return lambda request, number: Answer(well_behaved(request, number).text, delay_s=delay_s)


def wait_for(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come so far"
        time.sleep(0.01)


def outcomes(warehouse: Path) -> list[str]:
    return [row["outcome"] for row in rows_in(warehouse, "select outcome from runs order by started_at")]


def is_complete(warehouse: Path) -> bool:
    found = tables(warehouse)
    statuses = {row["status"] for name in ("responses", "verdicts") for row in found[name]}
    return (len(found["responses"]), len(found["verdicts"])) == (N_RESPONSES, N_VERDICTS) and statuses == {
        "ok", "met", "unmet",
    }  # fmt: skip


def assert_one_line(run: Run, *parts: str) -> None:
    assert run.code == 1
    assert len(run.complaint.splitlines()) == 1, run.complaint
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
        assert (first.code, second.code) == (0, 0), first.complaint + second.complaint
        assert len(server.paid) == N_CALLS
    assert n_reads > 2
    assert set(recorded(data).values()) == {1}
    assert outcomes(data) == ["done", "done"]
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
        assert second.wait() == 0, second.complaint
        # What the killed run had in hand was paid and never came; all else once.
        assert len(server.paid) <= N_CALLS + 8
    assert set(recorded(data).values()) == {1}
    assert is_complete(data)


@pytest.mark.long
def test_a_clock_that_jumps_back_between_two_runs_loses_and_doubles_nothing(stages: Stages, tmp_path: Path) -> None:
    def fails_at_times(request: Request, number: int) -> Answer:
        text = request["messages"][0]["content"]
        if is_judging(request) and sum(map(ord, text)) % 3 == 0:
            return Answer("no verdict")
        return well_behaved(request, number)

    with FaultServer(fails_at_times) as server:
        data = configured(tmp_path, server.api_base)
        assert stages.start(tmp_path, data).wait() == 0
        failed = [row["verdict_id"] for row in tables(data)["verdicts"] if row["status"] == "parse_error"]
        assert len(failed) > 50
        server.behaviour = well_behaved
        n_calls = len(server.book)
        assert stages.start(tmp_path, data, clock_s=-3600.0).wait() == 0
        assert is_complete(data)
        again = Counter(entry.digest for entry in server.entries[n_calls:])
        assert set(again.values()) == {1}
        assert len(again) <= len(failed)
        n_calls = len(server.book)
        assert stages.start(tmp_path, data, clock_s=-7200.0).wait() == 0
        assert len(server.book) == n_calls
    assert outcomes(data) == ["done", "done", "done"]
    assert is_complete(data)


@pytest.mark.parametrize("is_resumed_at_once", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_disk_that_is_full_for_the_ledger_ends_a_run_with_one_line_and_costs_no_recorded_reply(
    stages: Stages, tmp_path: Path, is_resumed_at_once: bool
) -> None:
    with FaultServer(taking(0.02)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data, file_bytes_when_calling=100_000)
        assert run.wait() == 1
        assert_one_line(run, "calls.sqlite: cannot be written", "make room")
        n_recorded = recorded(data).total()
        assert 0 < n_recorded < N_CALLS
        lost = len(server.paid) - n_recorded
        assert lost <= 2 * 8  # those in flight, and those that began before all batches knew
        if not is_resumed_at_once:  # the disk is still full
            still = stages.start(tmp_path, data, file_bytes_at_start=4_096)
            assert still.wait() == 1
            assert_one_line(still, "ledger")
        assert stages.start(tmp_path, data).wait() == 0
        assert len(server.paid) == N_CALLS + lost
    assert set(recorded(data).values()) == {1}
    assert is_complete(data)


def test_a_disk_that_is_full_for_a_part_ends_a_run_with_one_line_and_what_it_was_to_hold_is_not_paid_again(
    stages: Stages, tmp_path: Path
) -> None:
    with FaultServer() as server:
        data = configured(tmp_path, server.api_base)
        assert stages.start(tmp_path, data).wait() == 0
        for table in ("responses", "verdicts"):  # as after a kill between the last reply and the first part
            shutil.rmtree(data / "parts" / table)
        forget_parts(Warehouse(data))
        run = stages.start(tmp_path, data, file_bytes_when_calling=4_096)
        assert run.wait() == 1
        assert_one_line(run, "File too large")
        assert not list((data / "parts").glob("*/.*.tmp"))
        assert stages.start(tmp_path, data).wait() == 0
        assert len(server.paid) == N_CALLS
    assert is_complete(data)


@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_ends_a_run_within_seconds_though_its_calls_take_long(
    stages: Stages, tmp_path: Path, stop: signal.Signals
) -> None:
    with FaultServer(taking(60)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data)
        wait_for(lambda: server.in_hand == 8)
        assert len(run.members()) == 1
        before_s = time.monotonic()
        os.kill(run.pid, stop)
        assert run.wait() == 130, run.complaint
        assert time.monotonic() - before_s < 30
        assert run.complaint == "interrupted: finished work is kept; run the same command again to continue\n"
        wait_for(lambda: run.members() == [], 2)
    assert outcomes(data) == ["interrupted"]


CALLER = """
import asyncio, json, sys
from pathlib import Path
from tasks.llm.budget import Budget
from tasks.llm.calls.gateway import Gateway, Tries
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.litellm_setup import warm_up
from tasks.llm.limiter import Limiter
from tasks.llm.request import Call, Target

async def main(folder, api_base, run_id, number, concurrency):
    ledger = Ledger(Path(folder))
    gateway = Gateway(Limiter(int(concurrency), Budget(None, None)), ledger, run_id, Tries(3), "judge")
    target = Target("hosted_vllm/candidate", api_base, timeout_s=60.0)

    async def one(place):
        question = [{"role": "user", "content": f"question {place}"}]
        reply = await gateway.complete(Call(target, question, f"cell {place}", priority=(place,)))
        if reply.status != "ok":
            ledger.mark_used(reply.paid)
        return reply.status, reply.text

    warm_up()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(await asyncio.gather(*map(one, range(int(number))))), flush=True)
    ledger.close()

asyncio.run(main(*sys.argv[1:]))
"""


class Callers:
    """Processes that make the same calls."""

    def __init__(self, folder: Path, api_base: str, number: int, concurrency: int) -> None:
        self._arguments = [str(each) for each in (folder, api_base)], [str(number), str(concurrency)]
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, name: str) -> "subprocess.Popen[str]":
        at, how = self._arguments
        process = subprocess.Popen(
            [sys.executable, "-c", CALLER, *at, name, *how], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def go(self, *processes: "subprocess.Popen[str]") -> None:
        for process in processes:
            assert said(process) == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def callers(tmp_path: Path) -> Iterator[Any]:
    made: list[Callers] = []

    def make(server: FaultServer, number: int, concurrency: int) -> Callers:
        made.append(Callers(tmp_path / "ledger", server.api_base, number, concurrency))
        return made[-1]

    yield make
    for process in (process for each in made for process in each.processes):
        process.kill()
        process.communicate()


def test_two_processes_that_want_the_same_calls_at_once_make_each_of_them_once(callers: Any, tmp_path: Path) -> None:
    def place(request: Request) -> int:
        return int(str(request["messages"][0]["content"]).split()[1])

    def behaviour(request: Request, _number: int) -> Answer:
        if place(request) % 10 == 3:
            return Answer(None, refusal="no", delay_s=0.02)
        return Answer(f"answer {place(request)}", delay_s=0.02)

    with FaultServer(behaviour) as server:
        both = callers(server, 200, 8)
        one, other = both.start("one"), both.start("other")
        both.go(one, other)
        found = [json.loads(said(one)), json.loads(said(other))]
        assert (one.wait(120), other.wait(120)) == (0, 0)
        asked = Counter(place(entry.request) for entry in server.entries)
    expected = [["refused", None] if n % 10 == 3 else ["ok", f"answer {n}"] for n in range(200)]
    assert found == [expected, expected]
    assert asked == dict.fromkeys(range(200), 1)
    rows = spend_in(tmp_path / "ledger")
    assert {row["run_id"] for row in rows} == {"one", "other"}  # both had a share in the work
    assert (sum(row["calls"] for row in rows), sum(row["failed_calls"] for row in rows)) == (200, 20)


def test_what_a_killed_process_had_in_hand_is_taken_over_long_before_its_calls_would_have_ended(callers: Any) -> None:
    with FaultServer(lambda _request, number: Answer("x", delay_s=0.0 if number else 60.0)) as server:
        both = callers(server, 4, 4)
        holder, waiting = both.start("holder"), both.start("waiting")
        both.go(holder)
        wait_for(lambda: server.in_hand == 4)
        both.go(waiting)
        heard: list[str] = []
        listening = threading.Thread(target=lambda: heard.append(said(waiting)))
        listening.start()
        time.sleep(1.0)
        assert (len(server.book), heard) == (4, [])
        killed_at_s = time.monotonic()
        os.kill(holder.pid, signal.SIGKILL)
        listening.join(120)
        assert json.loads(heard[0]) == [["ok", "x"]] * 4
        assert len(server.book) == 8
        assert max(entry.arrived_at_s for entry in server.entries) - killed_at_s < 50  # the calls take 60 s
