"""Two processes on one ledger at once: no call is made twice, and a dead one's calls are taken over."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import spend_in
from tests.faults.answers import Answer
from tests.faults.content import Request
from tests.faults.server import FaultServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
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


def wait_for(condition: Any, timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come so far"
        time.sleep(0.01)
