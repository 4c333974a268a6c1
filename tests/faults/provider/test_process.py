"""The provider as a process of its own, and the file it keeps its book in."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.faults.answers import meets, seeded_faults, well_behaved
from tests.faults.process import ServerProcess
from tests.faults.provider.clients import chat, opened

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
JUDGING = "Here is one item of an expert's grading rubric."


def wait_for_lines(server: ServerProcess, n_lines: int) -> None:
    deadline_s = time.monotonic() + 30
    while len(server.read_book()) < n_lines:
        assert time.monotonic() < deadline_s, "the lines never came"
        time.sleep(0.02)


def test_it_answers_as_the_one_in_process_and_writes_every_answer_down(tmp_path: Path) -> None:
    with ServerProcess(book=tmp_path / "book.jsonl") as server:
        before_s = time.monotonic()
        for prompt in ("a", "a", JUDGING):
            said = httpx.post(f"{server.api_base}/chat/completions", json=chat(prompt)).json()
            assert said["choices"][0]["message"]["content"] == well_behaved(chat(prompt), 0).text
        wait_for_lines(server, 3)
        lines = server.read_book()
    assert lines == server.read_book()
    assert ("true" in said["choices"][0]["message"]["content"]) == meets(JUDGING)
    assert [(line["number"], line["is_judging"]) for line in lines] == [(0, False), (1, False), (0, True)]
    assert lines[0]["digest"] == lines[1]["digest"] != lines[2]["digest"]
    assert {(line["path"], line["model"], line["status"]) for line in lines} == {
        ("/v1/chat/completions", "candidate", 200)
    }
    assert all(line["is_paid"] and line["is_delivered"] for line in lines)
    assert before_s < lines[0]["arrived_at_s"] < lines[0]["answered_at_s"] < time.monotonic()
    assert "rubric" not in (tmp_path / "book.jsonl").read_text()


def test_its_faults_are_those_of_its_seed() -> None:
    requests = [chat(f"question {number}") for number in range(60)]
    expected = [seeded_faults(5, 0.5)(request, 0) for request in requests]
    with ServerProcess(seed=5, fault_rate=0.5) as server:
        for request in requests:
            try:
                httpx.post(f"{server.api_base}/chat/completions", json=request)
            except httpx.TransportError:
                continue
        wait_for_lines(server, len(requests))
        lines = server.read_book()
    assert [line["status"] for line in lines] == [None if a.cuts_connection else a.status for a in expected]
    assert [line["is_paid"] for line in lines] == [a.is_completion and not a.cuts_connection for a in expected]


CLIENT = """
import sys, time
from tests.faults.provider import clients
from tests.faults.process import ServerProcess
server = ServerProcess()
server.api_base = sys.argv[1]
connection = clients.opened(server, clients.chat())
print("sent", flush=True)
time.sleep(60)
"""


def test_the_book_outlives_a_client_that_is_killed() -> None:
    with ServerProcess(latency_mean_s=1) as server:
        command = [sys.executable, "-c", CLIENT, server.api_base]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"sent\n"
            client.kill()
        wait_for_lines(server, 1)
        (line,) = server.read_book()
    assert (line["is_paid"], line["is_delivered"]) == (True, False)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_writes_down_what_it_drops(ending: signal.Signals) -> None:
    with ServerProcess(latency_mean_s=60) as server, opened(server, chat()) as connection:
        started_s = time.monotonic()
        assert httpx.get(f"{server.api_base}/models").status_code == 200  # the request before this one is there, too
        os.kill(server.pid, ending)
        assert connection.recv(1) == b""
        wait_for_lines(server, 1)
        assert time.monotonic() - started_s < 10
    assert [(line["status"], line["is_paid"]) for line in server.read_book()] == [(None, False)]


def test_a_process_that_cannot_start_says_so() -> None:
    with ServerProcess() as first:
        port = httpx.URL(first.api_base).port or 0
        with pytest.raises(RuntimeError, match="did not start"), ServerProcess(port=port):
            pass
