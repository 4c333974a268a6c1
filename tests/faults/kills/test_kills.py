"""Runs that are killed, started twice, or out of disk space or time: nothing is lost, or paid again
without need.
"""

import itertools
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.behaviours import prompt_of, seeded_faults, slowed
from tests.faults.kills.starting import (
    CONCURRENCY,
    TICK_S,
    Run,
    Stages,
    configured,
    recorded,
    started_stages,
    tables,
)
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import rows_in, until
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

pytestmark = pytest.mark.slow

SEED = 20251114
FAULT_RATE = 0.02
LATENCY_S = 0.05
LONGEST_S = 0.4
SHARE_FROM_START = 0.3
GOOD = HttpResponse("good")
FAULTY = seeded_faults(SEED, FAULT_RATE)
GOOD_OR_FAULTY = seeded_faults(SEED, FAULT_RATE, base=lambda *_: GOOD)


class Killing:
    """Runs over one prepared warehouse against one provider, killed at random instants.

    An instant is drawn up to `LONGEST_S` after the first request of a process, or in a share of
    cases up to twice that after its start. `n_paid_again` counts the replies that were paid
    again for the same call.
    """

    def __init__(
        self,
        folder: Path,
        server: FaultServer,
        start: Callable[[Path, Path], Run],
    ):
        self.folder = folder
        self.server = server
        self.start = start
        self.n_kills = 0
        self.n_paid_again = 0
        self._draw = random.Random(SEED)
        self._undisturbed = self._warehouse("undisturbed")
        run = self.start(self.folder, self._undisturbed)
        assert run.wait() == 0, run.complaint
        self._expected = self._good_replies()
        # Both trials of a model are the same request, and their equal responses are judged once.
        counts = set(self._expected.values())
        assert counts == {1, 2}, "a reply was paid twice without any kill"

    def kill(self, n_kills: int):
        """Kill `n_kills` times, over as many runs as needed; each run is finished in the end, and
        compared.

        Raises:
            AssertionError: something was lost, duplicated or paid again without need.
        """
        while self.n_kills < n_kills:
            warehouse = self._warehouse("killed")
            earlier_replies = self._good_replies()
            while self._is_killed(self.start(self.folder, warehouse), n_kills):
                pass
            self._compare(warehouse, self._good_replies() - earlier_replies)
            shutil.rmtree(warehouse)

    def _warehouse(self, name: str) -> Path:
        return Path(shutil.copytree(self.folder / "data", self.folder / name))

    def _is_killed(self, run: Run, n_kills: int) -> bool:
        """Let a run finish, or kill it before, with all processes that it has started."""
        is_killed = self.n_kills < n_kills and self._instant_comes(run)
        if is_killed:
            os.killpg(run.pid, signal.SIGKILL)
            self.n_kills += 1
        assert (-signal.SIGKILL if is_killed else 0) == run.wait(), run.complaint
        until(lambda: run.members() == [], within_s=20)
        return is_killed

    def _instant_comes(self, run: Run) -> bool:
        """Wait for the instant of the next kill; False if the run ends before it."""
        longest_s = 2 * LONGEST_S
        n_calls = len(self.server.entries)
        if self._draw.random() >= SHARE_FROM_START:
            longest_s = LONGEST_S
            while len(self.server.entries) == n_calls and run.poll() is None:
                time.sleep(TICK_S)
        at_s = time.monotonic() + self._draw.uniform(0, longest_s)
        while time.monotonic() < at_s and run.poll() is None:
            time.sleep(TICK_S)
        return run.poll() is None

    def _good_replies(self) -> Counter[str]:
        """The number of good replies to each request: paid, and without a fault of the provider."""
        replies = Counter()
        for entry in self.server.paid:
            if GOOD_OR_FAULTY(entry.request, entry.number) == GOOD:
                replies[entry.digest] += 1
        return replies

    def _compare(self, warehouse: Path, paid: Counter[str]):
        actual = tables(warehouse)
        for name, expected_rows in tables(self._undisturbed).items():
            pairs = itertools.zip_longest(actual[name], expected_rows)
            differing = [
                (row, expected) for row, expected in pairs if row != expected
            ]
            assert differing[:2] == [], f"other {name} than in the undisturbed run"
        twice = [key for key, count in recorded(warehouse).items() if count > 1]
        assert twice == [], "replies are paid twice although the first was recorded"
        assert self._expected.keys() == paid.keys()
        assert self._expected <= paid, "a row has no reply behind it"
        self.n_paid_again += (paid - self._expected).total()


@pytest.mark.parametrize(
    ("kills", "judge"),
    [
        pytest.param(2, {}, marks=pytest.mark.long),
        (2, {"criteria_per_call": 4}),
        pytest.param(
            2,
            {"kind": "decisions", "criteria_per_call": 3},
            marks=pytest.mark.long,
        ),
        pytest.param(10, {}, marks=pytest.mark.long),
    ],
)
def test_a_stage_that_is_killed_again_and_again_ends_as_if_undisturbed(
    tmp_path,
    kills,
    judge,
):
    with FaultServer(slowed(LATENCY_S, FAULTY)) as server:
        configured(tmp_path, server.api_base, **judge)
        killing = Killing(tmp_path, server, started_stages().start)
        killing.kill(kills)
    assert killing.n_paid_again <= CONCURRENCY * kills  # those in flight


N_CALLS = 2 * 2 * 8 + 2 * 98
"""Two trials of two models on eight tasks; the responses of both trials are the same, and so are
their verdicts.
"""


@pytest.fixture
def stages() -> Stages:
    return started_stages()


def outcomes(warehouse: Path) -> list[str]:
    return [
        row["outcome"]
        for row in rows_in(warehouse, "select outcome from runs order by started_at")
    ]


def is_complete(warehouse: Path) -> bool:
    rows = tables(warehouse)
    responses = Counter(row["status"] for row in rows["responses"])
    verdicts = Counter(row["status"] for row in rows["verdicts"])
    n_decided = verdicts["met"] + verdicts["unmet"]
    return responses == {"ok": 32} and n_decided == verdicts.total() == 392


def assert_one_line(run: Run, *parts: str):
    assert run.code == 1
    assert len(run.complaint.splitlines()) == 1, run.complaint
    assert all(part in run.complaint for part in ("prbench: ", *parts)), run.complaint


def has_each_verdict_once(data: Path) -> bool:
    rows = rows_in(data, "select verdict_id from verdicts")
    return len({row["verdict_id"] for row in rows}) == len(rows)


def test_two_runs_at_once_share_the_work_and_make_no_call_twice(stages, tmp_path):
    with FaultServer(slowed(1.0, well_behaved)) as server:
        data = configured(tmp_path, server.api_base)
        first_run = stages.start(tmp_path, data)
        until(lambda: server.in_hand == CONCURRENCY)
        second_run = stages.start(tmp_path, data)
        until(lambda: server.in_hand > CONCURRENCY)
        n_reads = 0
        while first_run.poll() is None or second_run.poll() is None:
            assert has_each_verdict_once(data)
            n_reads += 1
            if n_reads == 3:
                server.behaviour = slowed(0.05, well_behaved)

    assert first_run.code == 0, first_run.complaint
    assert second_run.code == 0, second_run.complaint
    assert n_reads > 2
    with closing(sqlite3.connect(data / "ledger/calls.sqlite")) as ledger:
        runs = ledger.execute("select distinct run_id from calls").fetchall()
    assert len(runs) == 2
    assert len(server.paid) == N_CALLS
    assert set(recorded(data).values()) == {1}
    assert outcomes(data) == ["done", "done"]
    assert is_complete(data)


def test_a_run_goes_on_with_the_calls_that_a_killed_one_at_its_side_had_in_hand(
    stages,
    tmp_path,
):
    with FaultServer(slowed(1.0, well_behaved)) as server:
        data = configured(tmp_path, server.api_base)
        killed_run = stages.start(tmp_path, data)
        until(lambda: server.in_hand == CONCURRENCY)
        run = stages.start(tmp_path, data)
        until(lambda: len(run.members()) > 0 and server.in_hand > CONCURRENCY)

        os.killpg(killed_run.pid, signal.SIGKILL)
        killed_run.wait()
        server.behaviour = well_behaved
        assert run.wait() == 0, run.complaint

    # Calls in flight at the kill were paid without a reply; all others were paid once.
    assert len(server.paid) <= N_CALLS + CONCURRENCY
    assert set(recorded(data).values()) == {1}
    assert is_complete(data)


def sometimes_unreadable(request, number: int) -> HttpResponse:
    """A judge that decides nothing for a third of all prompts."""
    if is_judge_request(request) and sum(map(ord, prompt_of(request))) % 3 == 0:
        return HttpResponse("no verdict")
    return well_behaved(request, number)


@pytest.mark.long
def test_a_clock_that_jumps_back_between_two_runs_loses_and_doubles_nothing(
    stages,
    tmp_path,
):
    with FaultServer(sometimes_unreadable) as server:
        data = configured(tmp_path, server.api_base)
        assert stages.start(tmp_path, data).wait() == 0
        statuses = Counter(row["status"] for row in tables(data)["verdicts"])
        server.behaviour = well_behaved
        n_calls = len(server.book)

        assert stages.start(tmp_path, data, clock_s=-3600.0).wait() == 0

    repeated = Counter(entry.digest for entry in server.entries[n_calls:])
    assert statuses["parse_error"] > 50
    assert is_complete(data)
    assert set(repeated.values()) == {1}
    assert len(repeated) <= statuses["parse_error"]
    assert outcomes(data) == ["done", "done"]


def test_a_disk_that_is_full_for_the_ledger_costs_no_recorded_reply(stages, tmp_path):
    with FaultServer(slowed(0.02, well_behaved)) as server:
        data = configured(tmp_path, server.api_base)
        run = stages.start(tmp_path, data, file_bytes_when_calling=100_000)
        assert run.wait() == 1
        assert_one_line(run, "calls.sqlite: cannot be written", "check its space")
        n_recorded = recorded(data).total()
        n_lost = len(server.paid) - n_recorded
        run_on_full_disk = stages.start(tmp_path, data, file_bytes_at_start=4_096)
        assert run_on_full_disk.wait() == 1
        assert_one_line(run_on_full_disk, "ledger")

        assert stages.start(tmp_path, data).wait() == 0

    assert 0 < n_recorded < N_CALLS
    # Calls in flight, and calls that began before all batches knew.
    assert n_lost <= 2 * CONCURRENCY
    assert len(server.paid) == N_CALLS + n_lost
    assert set(recorded(data).values()) == {1}
    assert is_complete(data)


def test_a_disk_that_is_full_for_a_part_costs_no_reply_of_its_rows(stages, tmp_path):
    with FaultServer() as server:
        data = configured(tmp_path, server.api_base)
        assert stages.start(tmp_path, data).wait() == 0
        # As after a kill between the last reply and the first part.
        shutil.rmtree(data / "parts/responses")
        shutil.rmtree(data / "parts/verdicts")
        forget_parts(Warehouse(data))
        run = stages.start(tmp_path, data, file_bytes_when_calling=4_096)
        assert run.wait() == 1
        assert_one_line(run, "File too large")
        assert list((data / "parts").glob("*/.*.tmp")) == []

        assert stages.start(tmp_path, data).wait() == 0

    assert len(server.paid) == N_CALLS
    assert is_complete(data)
