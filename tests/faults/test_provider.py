"""The provider as clients see it, its book, and the provider as a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from openai import OpenAI
from openai.types import Batch

from tests.faults.answers import TakenRequest, meets, seeded_faults, well_behaved
from tests.faults.process import ServerProcess
from tests.faults.server import Answer, Entry, FaultServer, Request

pytestmark = pytest.mark.slow


def chat(content: str = "What is a bond?", **more: Any) -> Request:
    """A request for a chat completion."""
    return {"model": "candidate", "messages": [{"role": "user", "content": content}], **more}


def post(server: FaultServer | ServerProcess, request: object, path: str = "/chat/completions") -> httpx.Response:
    """A plain request, its answer as it came."""
    return httpx.post(server.api_base + path, content=json.dumps(request), timeout=60)


def opened(server: FaultServer | ServerProcess, request: Request) -> socket.socket:
    """A bare connection over which a request was sent and nothing was read yet."""
    address = urlsplit(server.api_base)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    body = json.dumps(request).encode()
    connection.sendall(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return connection


def test_what_fails_depends_on_the_seed_the_request_and_its_number_alone() -> None:
    requests, behaviour = [chat(f"question {number}") for number in range(4000)], seeded_faults(7, 0.5)
    expected = [behaviour(request, 0) for request in requests]
    assert [seeded_faults(7, 0.5)(TakenRequest(request), 0) for request in reversed(requests)] == expected[::-1]
    for other in (seeded_faults(8, 0.5), lambda request, _number: behaviour(request, 1)):
        same = sum(other(request, 0) == answer for request, answer in zip(requests, expected, strict=True))
        assert 0.2 < same / len(requests) < 0.4


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s, "it never came"
        time.sleep(0.01)


def fate(entry: Entry) -> tuple[int | None, bool, bool]:
    return entry.status, entry.is_paid, entry.is_delivered


def read_all(connection: socket.socket) -> bytes:
    """All bytes until the connection ends; raises if it ends with a reset, with what came before as argument."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        raise ConnectionResetError(received) from None
    return received


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("x"), (200, True, True)),
        (Answer("", refusal="no"), (200, True, True)),
        (Answer("x", choices=0), (200, False, True)),
        (Answer(status=500), (500, False, True)),
        (Answer(status=429, error={"message": "slow"}), (429, False, True)),
        (Answer(raw=b"{}"), (200, False, True)),
        (Answer("x", cuts_connection=True), (None, False, False)),
        (Answer("x", cuts_body=True), (200, True, False)),
        (Answer(status=500, cuts_body=True), (500, False, False)),
    ],
)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_book_knows_what_is_paid_and_what_was_delivered(
    answer: Answer, expected: tuple[int | None, bool, bool], is_streamed: bool
) -> None:
    with FaultServer(lambda _request, _number: answer) as server:
        try:
            post(server, chat(stream=is_streamed))
        except httpx.TransportError:
            assert not expected[2]
        wait_for(lambda: server.entries[0].answered_at_s is not None)
        assert [fate(entry) for entry in server.entries] == [expected]
        assert server.paid == [entry for entry in server.entries if expected[1]]
        assert server.in_hand == 0


def test_an_entry_has_the_request_its_headers_its_number_and_its_times() -> None:
    with FaultServer() as server:
        before_s = time.monotonic()
        for request in (chat("a", seed=1), chat("b"), dict(reversed(chat("a", seed=1).items()))):
            httpx.post(f"{server.api_base}/chat/completions", json=request, headers={"X-Cell": "Seven"})
        # The server notes the time when it has sent the answer, which its client may have by then.
        wait_for(lambda: server.in_hand == 0)
        after_s = time.monotonic()
    first, other, second = server.entries
    assert [entry.request for entry in server.entries] == server.book == [chat("a", seed=1), chat("b"), first.request]
    assert (first.number, other.number, second.number) == (0, 0, 1)
    assert first.digest == second.digest != other.digest
    assert (first.path, first.headers["x-cell"]) == ("/v1/chat/completions", "Seven")
    assert second.answered_at_s is not None
    assert before_s <= first.arrived_at_s <= second.arrived_at_s <= second.answered_at_s <= after_s


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_body_that_is_cut_ends_with_a_reset_after_its_first_half(is_streamed: bool) -> None:
    with FaultServer(lambda _request, _number: Answer("word " * 1000, cuts_body=True)) as server:
        with opened(server, chat(stream=is_streamed)) as connection, pytest.raises(ConnectionResetError) as caught:
            read_all(connection)
        head, _, body = caught.value.args[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert 2000 < len(body) < 5000


def test_a_client_that_gives_up_still_pays_for_what_was_made_for_it() -> None:
    with FaultServer(lambda _request, _number: Answer("late", delay_s=0.4)) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.api_base}/chat/completions", json=chat(), timeout=0.1)
        assert (fate(server.entries[0]), server.in_hand) == ((None, False, False), 1)
        wait_for(lambda: server.in_hand == 0)
        assert fate(server.entries[0]) == (200, True, False)


def test_an_answer_that_nobody_reads_is_not_delivered() -> None:
    with FaultServer(lambda _request, _number: Answer("x" * 30_000_000)) as server:
        with opened(server, chat()):
            wait_for(lambda: server.entries != [] and server.entries[0].is_paid)
            time.sleep(0.3)
            assert not server.entries[0].is_delivered
        wait_for(lambda: server.in_hand == 0)
        assert fate(server.entries[0]) == (200, True, False)


def test_ending_drops_what_is_in_hand_at_once() -> None:
    started_s = time.monotonic()
    slow = FaultServer(lambda _request, _number: Answer("late", delay_s=60))
    with slow as server, opened(server, chat()), opened(server, chat()):
        wait_for(lambda: server.in_hand == 2)
        server.stop()
        wait_for(lambda: server.in_hand == 0)
    assert time.monotonic() - started_s < 10
    assert [fate(entry) for entry in server.entries] == [(None, False, False)] * 2
    with pytest.raises(httpx.ConnectError):
        post(server, chat())


def lines(requests: dict[str, Request], url: str = "/v1/chat/completions") -> bytes:
    rows = [{"custom_id": name, "method": "POST", "url": url, "body": body} for name, body in requests.items()]
    return "\n".join(json.dumps(row) for row in rows).encode()


def client_of(server: FaultServer) -> OpenAI:
    return OpenAI(base_url=server.api_base, api_key="none", max_retries=0)


def batched(server: FaultServer, content: bytes) -> Batch:
    """A batch of these lines after its first poll."""
    client = client_of(server)
    source = client.files.create(file=("requests.jsonl", content), purpose="batch")
    asked = client.batches.create(input_file_id=source.id, completion_window="24h", endpoint="/v1/chat/completions")
    return client.batches.retrieve(asked.id)


def fetched(server: FaultServer, file_id: str | None) -> dict[str, Any]:
    text = client_of(server).files.content(str(file_id)).text
    return {row["custom_id"]: row for row in map(json.loads, text.splitlines())}


REQUESTS = {f"cell-{number}": chat(f"question {number}") for number in range(20)}


def test_a_batch_is_answered_as_its_requests_would_be_one_by_one() -> None:
    with FaultServer() as server:
        batch = batched(server, lines(REQUESTS))
        found = fetched(server, batch.output_file_id)
    assert (batch.status, batch.error_file_id) == ("completed", None)
    assert batch.request_counts is not None
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (20, 20, 0)
    assert found.keys() == REQUESTS.keys()
    assert list(found) != list(REQUESTS)
    for name, row in found.items():
        assert (row["error"], row["response"]["status_code"]) == (None, 200)
        assert row["response"]["body"]["choices"][0]["message"]["content"] == well_behaved(REQUESTS[name], 0).text


def test_what_is_not_well_goes_to_the_error_file() -> None:
    def faulty(request: Request, number: int) -> Answer:
        digit = int(request["messages"][0]["content"].split()[1])
        faults = {
            1: Answer(status=500), 2: Answer(cuts_connection=True), 3: Answer("x", cuts_body=True),
            4: Answer(raw=b"<html>"), 5: Answer(status=502, raw=b'{"error": null}'), 6: Answer("x", choices=0),
        }  # fmt: skip
        return faults.get(digit, well_behaved(request, number))

    with FaultServer(faulty) as server:
        batch = batched(server, lines(REQUESTS))
        good, bad = fetched(server, batch.output_file_id), fetched(server, batch.error_file_id)
    assert bad.keys() == {"cell-1", "cell-2", "cell-3", "cell-5"}
    assert good.keys() == REQUESTS.keys() - bad.keys()
    assert bad["cell-1"]["response"]["status_code"] == 500
    assert bad["cell-2"]["response"] is bad["cell-3"]["response"] is None
    assert bad["cell-2"]["error"]["code"] == "request_timeout"
    assert (good["cell-4"]["response"]["body"], bad["cell-5"]["response"]["body"]) == ("<html>", {"error": None})
    assert batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (16, 4)
    assert len(server.paid) == 14


def test_the_book_has_a_batch_s_requests_when_it_arrives_the_bill_when_it_is_processed() -> None:
    with FaultServer() as server:
        server.polls_until_done = 1
        batch = batched(server, lines(REQUESTS))
        assert {entry.path for entry in server.entries} == {"/v1/batches"}
        assert (server.book, server.paid, server.in_hand) == (list(REQUESTS.values()), [], 0)
        done = client_of(server).batches.retrieve(batch.id)
        assert [entry.number for entry in server.paid] == [0] * len(REQUESTS)
        assert not any(entry.is_delivered for entry in server.entries)
        fetched(server, done.output_file_id)
        wait_for(lambda: all(entry.is_delivered for entry in server.entries))
        assert all(entry.answered_at_s for entry in server.entries)
        batched(server, lines(REQUESTS))
        assert [entry.number for entry in server.entries[len(REQUESTS) :]] == [1] * len(REQUESTS)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b"{", "invalid_json_line"),
        (b'{"custom_id": 7, "body": {}}', "invalid_json_line"),
        (lines({"a": chat()}) + b"\n" + lines({"a": chat()}), "duplicate_custom_id"),
        (lines({"a": chat()}, "/v1/embeddings"), "invalid_url"),
        (lines({"a": chat(), "b": {**chat(), "model": "other"}}), "mismatched_model"),
    ],
)
def test_a_batch_whose_file_is_wrong_fails_and_says_why(content: bytes, code: str) -> None:
    with FaultServer() as server:
        batch = batched(server, content)
    assert batch.errors is not None
    assert (batch.status, [error.code for error in batch.errors.data or ()]) == ("failed", [code])
    assert server.entries == []


ROOT = Path(__file__).parents[2]
JUDGING = "Here is one item of an expert's grading rubric."


def test_it_answers_as_the_one_in_process_and_writes_every_answer_down(tmp_path: Path) -> None:
    with ServerProcess(book=tmp_path / "book.jsonl") as server:
        before_s = time.monotonic()
        for prompt in ("a", "a", JUDGING):
            said = httpx.post(f"{server.api_base}/chat/completions", json=chat(prompt)).json()
            assert said["choices"][0]["message"]["content"] == well_behaved(chat(prompt), 0).text
        wait_for(lambda: len(server.read_book()) >= 3)
        lines = server.read_book()
    assert lines == server.read_book()
    assert ("true" in said["choices"][0]["message"]["content"]) == meets(JUDGING)
    assert [(line["number"], line["is_judging"]) for line in lines] == [(0, False), (1, False), (0, True)]
    assert lines[0]["digest"] == lines[1]["digest"] != lines[2]["digest"]
    assert {(line["path"], line["status"]) for line in lines} == {("/v1/chat/completions", 200)}
    assert all(line["is_paid"] and line["is_delivered"] for line in lines)
    assert before_s < lines[0]["arrived_at_s"] < lines[0]["answered_at_s"] < time.monotonic()
    assert "rubric" not in (tmp_path / "book.jsonl").read_text()


CLIENT = """
import sys, time
from tests.faults.test_provider import chat, opened
from tests.faults.process import ServerProcess
server = ServerProcess()
server.api_base = sys.argv[1]
connection = opened(server, chat())
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
        wait_for(lambda: len(server.read_book()) >= 1)
        (line,) = server.read_book()
    assert (line["is_paid"], line["is_delivered"]) == (True, False)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_writes_down_what_it_drops(ending: signal.Signals) -> None:
    with ServerProcess(latency_mean_s=60) as server, opened(server, chat()) as connection:
        started_s = time.monotonic()
        assert httpx.get(f"{server.api_base}/models").status_code == 200  # the request before this one is there, too
        os.kill(server.pid, ending)
        assert connection.recv(1) == b""
        wait_for(lambda: len(server.read_book()) >= 1)
        assert time.monotonic() - started_s < 10
    assert [(line["status"], line["is_paid"]) for line in server.read_book()] == [(None, False)]


@pytest.mark.parametrize("request_", [[], {}, {"model": "m"}, {"model": "m", "messages": "no"}, "x"])
def test_what_is_no_request_is_refused_and_not_in_the_book(request_: object) -> None:
    with FaultServer() as server:
        assert [post(server, request_, path).status_code for path in ("/chat/completions", "/responses")] == [400, 400]
        assert post(server, {"model": "m", "input": "x", "stream": True}, "/responses").status_code == 400
    assert (server.book, server.entries) == ([], [])
