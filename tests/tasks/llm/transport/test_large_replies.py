"""Replies without end: they are read to a bound and no further, and nothing of them is kept."""

import gzip
import itertools
import json
import resource
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tasks.llm.budget import Budget
from tasks.llm.calls.batches import Batching, BatchOutcome
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import MOST_TEXT_BYTES
from tasks.llm.transport import MOST_BYTES, EventBody, TooLarge
from tests.faults.anything import AnyServer, Plain, Seen
from tests.tasks.llm.conftest import Calling, call_to

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

MEGABYTE = 1 << 20
HUGE = 300 * MEGABYTE
UNDER_WAY = 32 * MEGABYTE
"""What may be in the buffers of a connection when the client ends it."""
JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
HEAD = (
    b'{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
    b'{"role":"assistant","content":"'
)
TAIL = b'"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}'


def huge_json() -> Iterator[bytes]:
    yield HEAD
    for _ in range(HUGE // MEGABYTE):
        yield b"x" * MEGABYTE
    yield TAIL


def huge_stream() -> Iterator[bytes]:
    """Events of different texts: LiteLLM ends a stream that repeats itself."""
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for number in range(HUGE // 100_000):
        delta = {"choices": [{"index": 0, "delta": {"content": f"{number} " + "x" * 100_000}, "finish_reason": None}]}
        yield b"data: " + json.dumps({**chunk, **delta}).encode() + b"\n\n"


def bomb() -> Iterator[bytes]:
    """A few hundred kilobytes that are 300 MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in huge_json():
        yield packer.compress(piece)
    yield packer.flush()


def endless_line() -> Iterator[bytes]:
    for _ in range(HUGE // MEGABYTE):
        yield b"x" * MEGABYTE


GZIP = {"Content-Encoding": "gzip"}
REPLIES: dict[str, tuple[dict[str, Any], Plain]] = {
    "one piece": ({}, Plain(headers=JSON, body=huge_json)),
    "one piece, openai": ({"name": "openai/c"}, Plain(headers=JSON, body=huge_json)),
    "its length told": ({}, Plain(headers=JSON | {"Content-Length": str(HUGE)}, body=huge_json)),
    "responses": ({"name": "openai/c", "parameters": {"api": "responses"}}, Plain(headers=JSON, body=huge_json)),
    "streamed": ({"is_streamed": True}, Plain(headers=EVENTS, body=huge_stream)),
    "streamed, openai": ({"name": "openai/c", "is_streamed": True}, Plain(headers=EVENTS, body=huge_stream)),
    "a stream that is one line": ({"is_streamed": True}, Plain(headers=EVENTS, body=endless_line)),
    "packed": ({}, Plain(headers=JSON | GZIP, body=bomb)),
    "packed, openai": ({"name": "openai/c"}, Plain(headers=JSON | GZIP, body=bomb)),
    "an error": ({}, Plain(500, JSON, huge_json)),
    "an error, openai": ({"name": "openai/c"}, Plain(400, JSON, endless_line)),
    "a streamed call's error": ({"is_streamed": True}, Plain(429, JSON, endless_line)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_of_300_megabytes_is_a_state_of_its_own_and_takes_no_room(kind: str, calling: Calling) -> None:
    target, answer = REPLIES[kind]
    calling.patience_s = 600.0
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with AnyServer(answer) as server:
        call = call_to(f"{server.address}/v1", **{"timeout_s": 300.0, **target})
        reply = calling(call)
        again = calling(call)
        assert len(server.seen) == 1
        assert server.seen[0].n_sent < MOST_BYTES + UNDER_WAY
    assert (reply.status, reply.text, reply.attempts, again.status) == ("too_large", None, 1, "too_large")
    assert reply.error is not None
    assert "32 MiB" in reply.error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 700 * 1024
    assert sum(path.stat().st_size for path in calling.folder.rglob("*") if path.is_file()) < MEGABYTE


def test_a_stream_of_more_pieces_than_any_answer_has_is_too_large() -> None:
    body, events = EventBody(MOST_BYTES), b'data: {"choices":[]}\n\n' * 1000
    with pytest.raises(TooLarge):
        list(itertools.chain.from_iterable(body.feed(events) for _ in range(1000)))


def test_a_text_that_is_longer_than_any_answer_is_too_large(calling: Calling) -> None:
    body = HEAD + b"x" * (MOST_TEXT_BYTES + 1) + TAIL
    with AnyServer(Plain(headers=JSON, body=lambda: [body])) as server:
        reply = calling(call_to(f"{server.address}/v1"))
    assert (reply.status, reply.text, reply.prompt_tokens) == ("too_large", None, 3)


@pytest.mark.parametrize("name", ["hosted_vllm/c", "openai/c"])
def test_a_packed_reply_is_read_and_nothing_but_gzip_is_asked_for(name: str, calling: Calling) -> None:
    body = gzip.compress(HEAD + b"A debt." + TAIL)
    with AnyServer(Plain(headers=JSON | GZIP, body=lambda: [body])) as server:
        reply = calling(call_to(f"{server.address}/v1", name=name))
    assert (reply.status, reply.text, reply.prompt_tokens) == ("ok", "A debt.", 3)
    assert server.seen[0].headers["accept-encoding"] == "gzip"


def test_a_reply_in_a_packing_that_was_not_asked_for_is_a_provider_error(calling: Calling) -> None:
    with AnyServer(Plain(headers=JSON | {"Content-Encoding": "zstd"}, body=lambda: [b"packed"])) as server:
        reply = calling(call_to(f"{server.address}/v1"))
    assert reply.status == "provider_error"
    assert "zstd" in str(reply.error)


def batch_server(output: Callable[[list[str]], Iterable[bytes]]) -> AnyServer:
    """Batches that are done at once, with this for a file of results."""
    ids: list[str] = []
    shape = {"object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": "f", "completion_window": "24h"}
    batch = {**shape, "id": "b", "status": "completed", "created_at": 1, "output_file_id": "f"}
    file = {"id": "f", "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}

    def answer(seen: Seen) -> Plain:
        if seen.path.endswith("/content"):
            return Plain(headers={"Content-Type": "application/octet-stream"}, body=lambda: output(ids))
        if seen.path == "/v1/files":
            ids.extend(json.loads(line)["custom_id"] for line in seen.body.splitlines() if line.startswith(b"{"))
        body = json.dumps(file | {"status": "processed"} if seen.path == "/v1/files" else batch).encode()
        return Plain(headers=JSON, body=lambda: [body])

    return AnyServer(answer)


def result(custom_id: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"id":"r","custom_id":"' + custom_id.encode() + b'","response":{"status_code":200,"body":'
    yield from pieces
    yield b"}}\n"


def looked_after(calling: Calling, server: AnyServer, questions: int) -> BatchOutcome:
    async def work(_: Gateway, ledger: Ledger) -> BatchOutcome:
        calls = [call_to(f"{server.address}/v1", f"q{n}", name="openai/candidate") for n in range(questions)]
        return await Batching(calls[0].target, ledger, Budget(None, None), "a-run").submit_and_collect(calls, 60.0)

    calling.patience_s = 300.0
    return calling.inside(work)


@pytest.mark.slow
def test_a_result_of_a_batch_that_is_too_large_takes_none_of_the_others_with_it(calling: Calling) -> None:
    def output(ids: list[str]) -> Iterator[bytes]:
        yield from result(ids[0], [HEAD, b"first", TAIL])
        yield from result(ids[1], [HEAD, *([b"x" * MEGABYTE] * 65), TAIL])
        yield from result(ids[2], [HEAD, b"last", TAIL])

    with batch_server(output) as server:
        merged = looked_after(calling, server, 3)
    assert sorted((reply.status, reply.text) for reply in merged.replies) == [
        ("ok", "first"), ("too_large", None), ("too_large", None),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_file_of_results_without_end_is_read_to_its_bound_and_what_came_before_is_kept(calling: Calling) -> None:
    def output(ids: list[str]) -> Iterator[bytes]:
        yield from result(ids[0], [HEAD, b"first", TAIL])
        yield from result(ids[1], huge_json())
        yield from result(ids[2], [HEAD, b"last", TAIL])

    with batch_server(output) as server:
        merged = looked_after(calling, server, 3)
        assert server.seen[-1].n_sent < MOST_BYTES + UNDER_WAY
    assert sorted((reply.status, reply.text) for reply in merged.replies) == [
        ("ok", "first"), ("too_large", None), ("too_large", None),
    ]  # fmt: skip
