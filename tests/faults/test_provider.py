"""The provider as clients see it, its book, and the provider as a process of its own."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI
from openai.types import Batch

from tests.faults.behaviours import BookedRequest, meets, seeded_faults, well_behaved
from tests.faults.process import ServerProcess
from tests.faults.server import Entry, FaultServer, HttpResponse, Request

pytestmark = pytest.mark.slow


def chat(content: str = "What is a bond?", **more: Any) -> Request:
    """A request for a chat completion."""
    return {"model": "candidate", "messages": [{"role": "user", "content": content}], **more}


def post(server: FaultServer | ServerProcess, request: object, path: str = "/chat/completions") -> httpx.Response:
    """A plain request, its answer as it came."""
    return httpx.post(server.api_base + path, content=json.dumps(request), timeout=60)


def test_what_fails_depends_on_the_seed_the_request_and_its_number_alone() -> None:
    requests, behaviour = [chat(f"question {number}") for number in range(4000)], seeded_faults(7, 0.5)
    expected = [behaviour(request, 0) for request in requests]
    assert [seeded_faults(7, 0.5)(BookedRequest(request), 0) for request in reversed(requests)] == expected[::-1]
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


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (HttpResponse("x"), (200, True, True)), (HttpResponse("x", choices=0), (200, False, True)),
        (HttpResponse(status=500), (500, False, True)), (HttpResponse(raw=b"{}"), (200, False, True)),
        (HttpResponse("x", cuts_connection=True), (None, False, False)),
        (HttpResponse("x", cuts_body=True), (200, True, False)),
        (HttpResponse(status=500, cuts_body=True), (500, False, False)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_book_knows_what_is_paid_and_what_was_delivered(
    answer: HttpResponse, expected: tuple[int | None, bool, bool], is_streamed: bool
) -> None:
    with FaultServer(lambda _request, _number: answer) as server:
        try:
            post(server, chat(stream=is_streamed))
        except httpx.TransportError:
            assert not expected[2]
        wait_for(lambda: server.entries[0].responded_at_s is not None)
        assert [fate(entry) for entry in server.entries] == [expected]
        assert server.paid == [entry for entry in server.entries if expected[1]]
        assert server.in_hand == 0


def test_a_client_that_gives_up_still_pays_for_what_was_made_for_it() -> None:
    with FaultServer(lambda _request, _number: HttpResponse("late", delay_s=0.4)) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.api_base}/chat/completions", json=chat(), timeout=0.1)
        assert (fate(server.entries[0]), server.in_hand) == ((None, False, False), 1)
        wait_for(lambda: server.in_hand == 0)
        assert fate(server.entries[0]) == (200, True, False)


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


def test_what_is_not_well_goes_to_the_error_file() -> None:
    def faulty(request: Request, number: int) -> HttpResponse:
        digit = int(request["messages"][0]["content"].split()[1])
        faults = {
            1: HttpResponse(status=500), 2: HttpResponse(cuts_connection=True), 3: HttpResponse("x", cuts_body=True),
            4: HttpResponse(raw=b"<html>"), 5: HttpResponse(status=502, raw=b'{"error": null}'),
            6: HttpResponse("x", choices=0),
        }  # fmt: skip
        return faults.get(digit, well_behaved(request, number))

    with FaultServer(faulty) as server:
        batch = batched(server, lines(REQUESTS))
        good, bad = fetched(server, batch.output_file_id), fetched(server, batch.error_file_id)
    assert list(good) != sorted(good, key=list(REQUESTS).index)
    (choice,) = good["cell-7"]["response"]["body"]["choices"]
    assert choice["message"]["content"] == well_behaved(chat("question 7"), 0).text
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
        assert all(entry.responded_at_s for entry in server.entries)
        batched(server, lines(REQUESTS))
        assert [entry.number for entry in server.entries[len(REQUESTS) :]] == [1] * len(REQUESTS)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"), (b"{", "invalid_json_line"), (lines({"a": chat()}, "/v1/embeddings"), "invalid_url"),
        (lines({"a": chat()}) + b"\n" + lines({"a": chat()}), "duplicate_custom_id"),
        (lines({"a": chat(), "b": {**chat(), "model": "other"}}), "mismatched_model"),
    ],
)  # fmt: skip
def test_a_batch_whose_file_is_wrong_fails_and_says_why(content: bytes, code: str) -> None:
    with FaultServer() as server:
        batch = batched(server, content)
    assert batch.errors is not None
    assert (batch.status, [error.code for error in batch.errors.data or ()]) == ("failed", [code])
    assert server.entries == []


ROOT = Path(__file__).parents[2]
JUDGE_REQUEST = "Here is one item of an expert's grading rubric."


def test_it_answers_as_the_one_in_process_and_writes_every_answer_down(tmp_path: Path) -> None:
    with ServerProcess(book=tmp_path / "book.jsonl") as server:
        before_s = time.monotonic()
        for prompt in ("a", "a", JUDGE_REQUEST):
            said = httpx.post(f"{server.api_base}/chat/completions", json=chat(prompt)).json()
            assert said["choices"][0]["message"]["content"] == well_behaved(chat(prompt), 0).text
        wait_for(lambda: len(server.read_book()) >= 3)
        lines = server.read_book()
    assert lines == server.read_book()
    assert ("true" in said["choices"][0]["message"]["content"]) == meets(JUDGE_REQUEST)
    assert [(line["number"], line["is_judge_request"]) for line in lines] == [(0, False), (1, False), (0, True)]
    assert lines[0]["digest"] == lines[1]["digest"] != lines[2]["digest"]
    assert {(line["path"], line["status"]) for line in lines} == {("/v1/chat/completions", 200)}
    assert all(line["is_paid"] and line["is_delivered"] for line in lines)
    assert before_s < lines[0]["arrived_at_s"] < lines[0]["answered_at_s"] < time.monotonic()
    assert "rubric" not in (tmp_path / "book.jsonl").read_text()
