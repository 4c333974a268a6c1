"""Files and batches, with OpenAI's own client."""

import json
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from openai.types import Batch

from tests.faults.provider.clients import chat, with_client
from tests.faults.server import Answer, FaultServer, Request, well_behaved


def lines(requests: dict[str, Request], url: str = "/v1/chat/completions") -> bytes:
    rows = [{"custom_id": name, "method": "POST", "url": url, "body": body} for name, body in requests.items()]
    return "\n".join(json.dumps(row) for row in rows).encode()


async def submitted(client: AsyncOpenAI, content: bytes, **more: Any) -> Batch:
    source = await client.files.create(file=("requests.jsonl", content), purpose="batch")
    asked = {"completion_window": "24h", "endpoint": "/v1/chat/completions", **more}
    return await client.batches.create(input_file_id=source.id, **asked)


async def results(client: AsyncOpenAI, file_id: str | None) -> dict[str, Any]:
    assert file_id is not None
    text = (await client.files.content(file_id)).text
    return {row["custom_id"]: row for row in map(json.loads, text.splitlines())}


def batched(server: FaultServer, content: bytes) -> Batch:
    """A batch of these lines after its first poll."""

    async def use(client: AsyncOpenAI) -> Batch:
        return await client.batches.retrieve((await submitted(client, content)).id)

    return with_client(server.api_base, use)


def fetched(server: FaultServer, file_id: str | None) -> dict[str, Any]:
    return with_client(server.api_base, lambda client: results(client, file_id))


REQUESTS = {f"cell-{number}": chat(f"question {number}") for number in range(20)}


def test_a_file_comes_back_as_it_was_sent() -> None:
    content = "ünïcode \u2028\n".encode() * 1000

    async def use(client: AsyncOpenAI) -> None:
        sent = await client.files.create(file=("a.jsonl", content), purpose="batch")
        described = await client.files.retrieve(sent.id)
        assert (described.filename, described.bytes, described.purpose) == ("a.jsonl", len(content), "batch")
        assert (await client.files.content(sent.id)).content == content
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve("file-none")
        with pytest.raises(openai.NotFoundError):
            await client.files.content("file-none")

    with FaultServer() as server:
        with_client(server.api_base, use)
        assert httpx.post(f"{server.api_base}/files", files={"file": b"x"}).status_code == 400


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


def test_a_batch_is_in_progress_for_as_many_polls_as_it_is_told_to() -> None:
    async def use(client: AsyncOpenAI) -> list[str]:
        batch = await submitted(client, lines(REQUESTS), metadata={"run": "7"})
        polled = [await client.batches.retrieve(batch.id) for _ in range(4)]
        assert {one.metadata and one.metadata["run"] for one in polled} == {"7"}
        assert polled[2].completed_at is not None
        return [batch.status, *(one.status for one in polled)]

    with FaultServer() as server:
        server.polls_until_done = 2
        expected = ["validating", "in_progress", "in_progress", "completed", "completed"]
        assert with_client(server.api_base, use) == expected
    assert len(server.paid) == len(REQUESTS)


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
        done = with_client(server.api_base, lambda client: client.batches.retrieve(batch.id))
        assert [entry.number for entry in server.paid] == [0] * len(REQUESTS)
        assert not any(entry.is_delivered for entry in server.entries)
        fetched(server, done.output_file_id)
        assert all(entry.is_delivered and entry.answered_at_s for entry in server.entries)
        batched(server, lines(REQUESTS))
        assert [entry.number for entry in server.entries[len(REQUESTS) :]] == [1] * len(REQUESTS)


def test_a_batch_can_fail_as_a_whole_without_a_bill() -> None:
    with FaultServer() as server:
        server.batch_end = "failed"
        batch = batched(server, lines(REQUESTS))
    assert (batch.status, batch.output_file_id, batch.error_file_id) == ("failed", None, None)
    assert batch.errors is not None
    assert [error.code for error in batch.errors.data or ()] == ["token_limit_exceeded"]
    assert server.paid == []


@pytest.mark.parametrize("n_answered", [0, 7])
def test_a_batch_that_expires_gives_out_and_charges_what_was_answered_by_then(n_answered: int) -> None:
    with FaultServer() as server:
        server.batch_end, server.answered_before_end = "expired", n_answered
        batch = batched(server, lines(REQUESTS))
        late = fetched(server, batch.error_file_id)
        good = fetched(server, batch.output_file_id) if n_answered else {}
        assert (batch.status, batch.output_file_id is None) == ("expired", n_answered == 0)
    assert (len(good), len(late), len(server.paid)) == (n_answered, len(REQUESTS) - n_answered, n_answered)
    assert {row["error"]["code"] for row in late.values()} == {"batch_expired"}


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
