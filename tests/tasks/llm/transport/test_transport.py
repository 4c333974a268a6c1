"""Redirects are never followed, and endless replies are read up to a bound."""

import asyncio
import gzip
import itertools
import json
import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.bodies import EventBody, ReplyTooLarge
from tasks.llm.exchange import MOST_BYTES
from tasks.llm.limiter import NotCalled
from tasks.llm.request import Call
from tasks.rules.errors import PipelineError
from tests.faults.anything import AnyServer, Plain
from tests.tasks.llm.conftest import call_to, calls_to
from tests.tasks.llm.transport.test_ends import EVENTS, JSON, event

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

ROUTES: dict[str, dict[str, Any]] = {
    "responses": {"name": "openai/candidate", "parameters": {"api": "responses"}},
}
for provider in ("hosted_vllm", "openai", "azure", "anthropic"):
    target_settings: dict[str, Any] = {"name": f"{provider}/candidate"}
    if provider == "anthropic":
        target_settings["parameters"] = {"max_tokens": 9}
    ROUTES[provider] = target_settings
    ROUTES[f"{provider}, streamed"] = {**target_settings, "is_streamed": True}
for provider in ("azure_ai", "gemini", "mistral", "openrouter", "ollama_chat"):
    ROUTES[provider] = {"name": f"{provider}/c"}
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("AZURE", "AZURE_AI", "ANTHROPIC", "GEMINI", "MISTRAL", "OPENROUTER"):
        monkeypatch.setenv(f"{name}_API_KEY", f"sk-planted-{name.lower()}-0123")
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01")


@pytest.fixture
def elsewhere() -> Iterator[AnyServer]:
    """Another server, which must get no request. It would respond like a provider."""
    choice = b'{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}'
    body = b'{"id":"x","object":"chat.completion","choices":[' + choice + b"]}"
    http_response = Plain(headers=JSON, body=lambda: [body])
    with AnyServer(http_response, "localhost") as server:
        yield server


def away(status: int, location: str) -> Plain:
    return Plain(status, {"Location": location, "Content-Length": "0"})


@pytest.mark.parametrize(
    ("route", "status"),
    [
        *itertools.product(ROUTES, [307]),
        *itertools.product(["hosted_vllm"], STATUSES),
        ("openai", 302),
    ],
)
def test_a_redirect_fails_and_is_not_followed(route, status, calling, elsewhere):
    calling.attempts = 4
    host = elsewhere.address.removeprefix("http://")
    headers = {"X-Team-Token": "blue"}
    location = f"{elsewhere.address}/v1/chat/completions?key=told"

    with AnyServer(away(status, location)) as server:
        reply = calling(
            call_to(f"{server.address}/v1", headers=headers, **ROUTES[route])
        )

    assert reply.status == "redirected"
    assert reply.text is None
    assert reply.attempts == 1
    assert reply.cost_usd is None
    assert re.search(rf"HTTP {status}.*{host}", str(reply.error))
    assert "told" not in str(reply.error)
    assert len(server.seen) == 1
    assert elsewhere.seen == []


@pytest.mark.parametrize(
    "location",
    [
        "",
        "http://[",
        "//",
        "ftp://x/",
        "http://user:sk-planted@x/",
        "http://\u202ex/",
        "relative",
    ],
)
def test_a_location_that_is_none_is_no_reason_to_try_again(location, calling):
    with AnyServer(away(302, location.encode().decode("latin-1"))) as server:
        reply = calling(call_to(f"{server.address}/v1"))

    assert reply.status == "redirected"
    assert len(server.seen) == 1
    assert str(reply.error).isascii()
    assert "sk-planted" not in str(reply.error)


def test_an_endpoint_that_redirects_is_stopped_in_a_line_with_its_host(
    calling,
    elsewhere,
):
    host = elsewhere.address.removeprefix("http://")
    calling.concurrency = 1

    with AnyServer(away(307, elsewhere.address)) as server:
        replies = calling.call_at_once(*calls_to(f"{server.address}/v1", 9))

    assert len(server.seen) == 1
    assert all(isinstance(reply, NotCalled) for reply in replies[1:])
    assert re.fullmatch(f".*{host}.*", str(calling.reason_to_stop))


@pytest.mark.parametrize(
    "path",
    ["/v1/files", "/v1/batches", "/v1/batches/b", "/v1/files/f/content"],
)
def test_no_step_of_a_batch_follows_a_redirect(path, calling, elsewhere):
    server = batch_server(
        lambda _: (), {path: away(307, f"{elsewhere.address}{path}")}
    )

    with server, pytest.raises(PipelineError, match="redirects to localhost"):
        asyncio.run(calling.batched(batched_calls(server, 1)))

    assert elsewhere.seen == []


def test_other_clients_of_the_process_follow_redirects_as_before(elsewhere):
    import httpx

    with AnyServer(away(307, elsewhere.address)) as server:
        response = httpx.get(server.address, follow_redirects=True)

    assert response.status_code == 200
    assert len(elsewhere.seen) == 1


MEGABYTE = 1 << 20
HUGE = 128 * MEGABYTE
UNDER_WAY = 32 * MEGABYTE
"""The most bytes in the buffers of a connection when the client closes it."""
MOST_GROWTH_KB = 250 * 1024
HEAD = (
    b'{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,'
    b'"finish_reason":"stop","message":{"role":"assistant","content":"'
)
TAIL = b'"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}'


def endless_line() -> Iterator[bytes]:
    yield from itertools.repeat(b"x" * MEGABYTE, HUGE // MEGABYTE)


def huge_json() -> Iterator[bytes]:
    yield HEAD
    yield from endless_line()
    yield TAIL


def huge_stream() -> Iterator[bytes]:
    """Events with different texts, since LiteLLM ends a stream that repeats itself."""
    for number in range(HUGE // MEGABYTE):
        delta = {"content": f"{number} " + "x" * MEGABYTE}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield event(choices=[choice]).encode()


REPLIES: dict[str, tuple[dict[str, Any], Plain]] = {
    "one piece": ({}, Plain(headers=JSON, body=huge_json)),
    "one piece, openai": ({"name": "openai/c"}, Plain(headers=JSON, body=huge_json)),
    "its length told": (
        {},
        Plain(headers=JSON | {"Content-Length": str(HUGE)}, body=huge_json),
    ),
    "responses": (
        {"name": "openai/c", "parameters": {"api": "responses"}},
        Plain(headers=JSON, body=huge_json),
    ),
    "streamed": ({"is_streamed": True}, Plain(headers=EVENTS, body=huge_stream)),
    "streamed, openai": (
        {"name": "openai/c", "is_streamed": True},
        Plain(headers=EVENTS, body=huge_stream),
    ),
    "a stream that is one line": (
        {"is_streamed": True},
        Plain(headers=EVENTS, body=endless_line),
    ),
    "an error": ({}, Plain(500, JSON, huge_json)),
    "an error, openai": ({"name": "openai/c"}, Plain(400, JSON, endless_line)),
    "a streamed call's error": (
        {"is_streamed": True},
        Plain(429, JSON, endless_line),
    ),
}


def bytes_of(folder: Path) -> int:
    """The size of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_that_is_far_too_large_is_a_state_of_its_own_and_takes_no_room(
    kind,
    calling,
):
    target, http_response = REPLIES[kind]
    calling.patience_s = 600.0
    Path("/proc/self/clear_refs").write_text("5")  # the peak is the present memory
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with AnyServer(http_response) as server:
        call = call_to(f"{server.address}/v1", **{"timeout_s": 300.0, **target})
        reply = calling(call)
        stored_reply = calling(call)

    growth_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb
    [seen] = server.seen
    assert reply.status == "too_large"
    assert reply.text is None
    assert reply.attempts == 1
    assert "32 MiB" in str(reply.error)
    assert stored_reply.status == "too_large"
    assert seen.n_sent < MOST_BYTES + UNDER_WAY
    assert growth_kb < MOST_GROWTH_KB
    assert bytes_of(calling.folder) < MEGABYTE


def test_a_stream_of_more_pieces_than_any_reply_has_is_too_large():
    body = EventBody(MOST_BYTES)
    comments = b":\n" * 1_000  # a comment is a line like any other
    for _ in range(500):
        body.feed(comments)

    with pytest.raises(ReplyTooLarge):
        body.feed(comments)


@pytest.mark.parametrize("name", ["hosted_vllm/c", "openai/c"])
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_no_packing_is_requested_and_a_packed_reply_is_a_provider_error(
    packing,
    name,
    calling,
):
    body = gzip.compress(HEAD + b"A debt." + TAIL)
    http_response = Plain(
        headers=JSON | {"Content-Encoding": packing}, body=lambda: [body]
    )

    with AnyServer(http_response) as server:
        reply = calling(call_to(f"{server.address}/v1", name=name))

    assert reply.status == "provider_error"
    assert packing in str(reply.error)
    assert server.seen[0].headers["accept-encoding"] == "identity"


def batch_server(
    output: Callable[[list[str]], Iterable[bytes]],
    by_path: Mapping[str, Plain] = {},
) -> AnyServer:
    """A server whose batches end at once, with `output` as the result file, and with other
    responses on some paths.
    """
    custom_ids = []
    batch = {
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": "f",
        "completion_window": "24h",
        "id": "b",
        "status": "completed",
        "created_at": 1,
        "output_file_id": "f",
    }
    file = {
        "id": "f",
        "object": "file",
        "bytes": 1,
        "created_at": 1,
        "filename": "x",
        "purpose": "batch",
        "status": "processed",
    }

    def http_response(seen):
        if seen.path in by_path:
            return by_path[seen.path]
        if seen.path.endswith("/content"):
            return Plain(body=lambda: output(custom_ids))
        if seen.path == "/v1/files":
            for line in seen.body.splitlines():
                if line.startswith(b"{"):
                    custom_ids.append(json.loads(line)["custom_id"])
            return Plain(headers=JSON, body=lambda: [json.dumps(file).encode()])
        return Plain(headers=JSON, body=lambda: [json.dumps(batch).encode()])

    return AnyServer(http_response)


def result(custom_id: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A line of a result file, whose body consists of some pieces."""
    yield f'{{"id":"r","custom_id":"{custom_id}","response":{{"status_code":200,"body":'.encode()
    yield from pieces
    yield b"}}\n"


def batched_calls(server: AnyServer, n_calls: int) -> list[Call]:
    return calls_to(f"{server.address}/v1", n_calls, name="openai/candidate")


def large_json() -> Iterator[bytes]:
    """A completion that is a little too large."""
    yield HEAD
    yield from itertools.repeat(b"x" * MEGABYTE, 65)
    yield TAIL


@pytest.mark.parametrize("body", [large_json, huge_json])
def test_too_large_a_result_is_read_to_its_bound(body, calling):
    def output(custom_ids):
        yield from result(custom_ids[0], [HEAD, b"first", TAIL])
        yield from result(custom_ids[1], body())
        yield from result(custom_ids[2], [HEAD, b"last", TAIL])

    with batch_server(output) as server:
        batching = asyncio.run(calling.batched(batched_calls(server, 3)))

    outcomes = sorted((reply.status, reply.text) for reply in batching.replies)
    assert outcomes == [("ok", "first"), ("too_large", None), ("too_large", None)]
    assert server.seen[-1].n_sent < MOST_BYTES + UNDER_WAY
