"""Redirects are never followed, and endless replies are read up to a bound."""

import asyncio
import gzip
import itertools
import json
import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from tasks.llm.bodies import EventBody, ReplyTooLarge
from tasks.llm.limiter import ModelStopped
from tasks.llm.reading import MOST_TEXT_BYTES
from tasks.llm.request import Call
from tasks.llm.transport import MOST_BYTES
from tasks.rules.errors import PipelineError
from tests.faults.anything import AnyServer, Plain, Seen
from tests.tasks.llm.conftest import Calling, call_to

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

BOTH_WAYS = {
    "hosted_vllm": {},
    "openai": {},
    "azure": {},
    "anthropic": {"parameters": {"max_tokens": 9}},
}
ROUTES: dict[str, dict[str, Any]] = {
    **{name: {"name": f"{name}/candidate", **more} for name, more in BOTH_WAYS.items()},
    **{
        f"{name}, streamed": {
            "name": f"{name}/c",
            "is_streamed": True,
            **more,
        }
        for name, more in BOTH_WAYS.items()
    },
    **{
        name: {"name": f"{name}/c"}
        for name in ("azure_ai", "gemini", "mistral", "openrouter", "ollama_chat")
    },
    "responses": {"name": "openai/candidate", "parameters": {"api": "responses"}},
}
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE", "AZURE_AI", "ANTHROPIC", "GEMINI", "MISTRAL", "OPENROUTER"):
        monkeypatch.setenv(f"{name}_API_KEY", f"sk-planted-{name.lower()}-0123")
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01")


@pytest.fixture
def elsewhere() -> Iterator[AnyServer]:
    """Another server, which must get no request. It would respond like a provider."""
    choice = b'{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}'
    body = b'{"id":"x","object":"chat.completion","choices":[' + choice + b"]}"
    with AnyServer(
        Plain(headers={"Content-Type": "application/json"}, body=lambda: [body]), "localhost"
    ) as server:
        yield server


def away(status: int, location: str) -> Plain:
    return Plain(status, {"Location": location, "Content-Length": "0"})


@pytest.mark.parametrize(
    ("route", "status"),
    [*((route, 307) for route in ROUTES), *(("hosted_vllm", s) for s in STATUSES), ("openai", 302)],
)
def test_a_redirect_fails_and_is_not_followed(
    route: str, status: int, calling: Calling, elsewhere: AnyServer
) -> None:
    calling.attempts = 4
    with AnyServer(away(status, f"{elsewhere.address}/v1/chat/completions?key=told")) as server:
        reply = calling(
            call_to(f"{server.address}/v1", headers={"X-Team-Token": "blue"}, **ROUTES[route])
        )
    assert reply.status == "redirected"
    assert reply.text is None
    assert reply.attempts == 1
    assert reply.cost_usd is None
    assert re.search(
        rf"HTTP {status}.*{elsewhere.address.removeprefix('http://')}", str(reply.error)
    )
    assert "told" not in str(reply.error)
    assert len(server.seen) == 1
    assert elsewhere.seen == []


LOCATIONS = (
    "",
    "http://[",
    "//",
    "ftp://x/",
    "http://user:sk-planted@x/",
    "http://\u202ex/",
    "relative",
)


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_location_that_is_none_is_no_reason_to_try_again(location: str, calling: Calling) -> None:
    plain = Plain(302, {"Location": location.encode().decode("latin-1"), "Content-Length": "0"})
    with AnyServer(plain) as server:
        reply = calling(call_to(f"{server.address}/v1"))
    assert reply.status == "redirected"
    assert len(server.seen) == 1
    assert str(reply.error).isascii()
    assert "sk-planted" not in str(reply.error)


def test_an_endpoint_that_redirects_is_stopped_in_a_line_with_its_host(
    calling: Calling, elsewhere: AnyServer
) -> None:
    calling.concurrency = 1
    with AnyServer(away(307, elsewhere.address)) as server:
        _, *others = calling.at_once(*(call_to(f"{server.address}/v1", f"q{n}") for n in range(9)))
    assert len(server.seen) == 1
    assert all(isinstance(reply, ModelStopped) for reply in others)
    assert re.fullmatch(
        f".*{elsewhere.address.removeprefix('http://')}.*", str(calling.stopped.popitem()[1])
    )


@pytest.mark.parametrize(
    "moved", ["/v1/files", "/v1/batches", "/v1/batches/b", "/v1/files/f/content"]
)
def test_no_step_of_a_batch_follows_a_redirect(
    moved: str, calling: Calling, elsewhere: AnyServer
) -> None:
    server = batch_server(lambda _: (), {moved: away(307, f"{elsewhere.address}{moved}")})
    with server, pytest.raises(PipelineError, match="redirects to localhost"):
        asyncio.run(calling.batched(by_the_batch(server, 1)))
    assert elsewhere.seen == []


def test_other_clients_of_the_process_follow_redirects_as_before(elsewhere: AnyServer) -> None:
    import httpx

    with AnyServer(away(307, elsewhere.address)) as server:
        assert httpx.get(server.address, follow_redirects=True).status_code == 200
    assert len(elsewhere.seen) == 1


MEGABYTE = 1 << 20
HUGE = 128 * MEGABYTE
UNDER_WAY = 32 * MEGABYTE
"""The most bytes in the buffers of a connection when the client closes it."""
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}
HEAD = (
    b'{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
    b'{"role":"assistant","content":"'
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
    chunk = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }
    for number in range(HUGE // 100_000):
        delta = {
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": f"{number} " + "x" * 100_000},
                    "finish_reason": None,
                }
            ]
        }
        yield b"data: " + json.dumps({**chunk, **delta}).encode() + b"\n\n"


REPLIES: dict[str, tuple[dict[str, Any], Plain]] = {
    "one piece": ({}, Plain(headers=JSON, body=huge_json)),
    "one piece, openai": ({"name": "openai/c"}, Plain(headers=JSON, body=huge_json)),
    "its length told": ({}, Plain(headers=JSON | {"Content-Length": str(HUGE)}, body=huge_json)),
    "responses": (
        {"name": "openai/c", "parameters": {"api": "responses"}},
        Plain(headers=JSON, body=huge_json),
    ),
    "streamed": ({"is_streamed": True}, Plain(headers=EVENTS, body=huge_stream)),
    "streamed, openai": (
        {"name": "openai/c", "is_streamed": True},
        Plain(headers=EVENTS, body=huge_stream),
    ),
    "a stream that is one line": ({"is_streamed": True}, Plain(headers=EVENTS, body=endless_line)),
    "an error": ({}, Plain(500, JSON, huge_json)),
    "an error, openai": ({"name": "openai/c"}, Plain(400, JSON, endless_line)),
    "a streamed call's error": ({"is_streamed": True}, Plain(429, JSON, endless_line)),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_that_is_far_too_large_is_a_state_of_its_own_and_takes_no_room(
    kind: str, calling: Calling
) -> None:
    target, http_response = REPLIES[kind]
    calling.patience_s = 600.0
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with AnyServer(http_response) as server:
        call = call_to(f"{server.address}/v1", **{"timeout_s": 300.0, **target})
        reply = calling(call)
        again = calling(call)
        (seen,) = server.seen
        assert seen.n_sent < MOST_BYTES + UNDER_WAY
    assert reply.status == "too_large"
    assert reply.text is None
    assert reply.attempts == 1
    assert again.status == "too_large"
    assert "32 MiB" in str(reply.error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 500 * 1024
    assert (
        sum(path.stat().st_size for path in calling.folder.rglob("*") if path.is_file()) < MEGABYTE
    )


def test_a_stream_of_more_pieces_than_any_reply_has_is_too_large() -> None:
    body = EventBody(MOST_BYTES)
    events = b'data: {"choices":[]}\n\n' * 1000
    with pytest.raises(ReplyTooLarge):
        b"".join(body.feed(events) for _ in range(1000))


def test_a_text_that_is_longer_than_any_reply_is_too_large(calling: Calling) -> None:
    body = HEAD + b"x" * (MOST_TEXT_BYTES + 1) + TAIL
    with AnyServer(Plain(headers=JSON, body=lambda: [body])) as server:
        reply = calling(call_to(f"{server.address}/v1"))
    assert reply.status == "too_large"
    assert reply.text is None
    assert reply.prompt_tokens == 3


@pytest.mark.parametrize("name", ["hosted_vllm/c", "openai/c"])
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_no_packing_is_asked_for_and_a_packed_reply_is_a_provider_error(
    packing: str, name: str, calling: Calling
) -> None:
    body = gzip.compress(HEAD + b"A debt." + TAIL)
    with AnyServer(
        Plain(headers=JSON | {"Content-Encoding": packing}, body=lambda: [body])
    ) as server:
        reply = calling(call_to(f"{server.address}/v1", name=name))
    assert reply.status == "provider_error"
    assert packing in str(reply.error)
    assert server.seen[0].headers["accept-encoding"] == "identity"


def batch_server(
    output: Callable[[list[str]], Iterable[bytes]], others: Mapping[str, Plain] = {}
) -> AnyServer:
    """A server whose batches end at once, with `output` as the result file, and with other
    responses on some paths.
    """
    ids: list[str] = []
    shape = {
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": "f",
        "completion_window": "24h",
    }
    batch = {
        **shape,
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
    }

    def http_response(seen: Seen) -> Plain:
        if seen.path in others:
            return others[seen.path]
        if seen.path.endswith("/content"):
            return Plain(
                headers={"Content-Type": "application/octet-stream"}, body=lambda: output(ids)
            )
        if seen.path == "/v1/files":
            ids.extend(
                json.loads(line)["custom_id"]
                for line in seen.body.splitlines()
                if line.startswith(b"{")
            )
        body = json.dumps(
            file | {"status": "processed"} if seen.path == "/v1/files" else batch
        ).encode()
        return Plain(headers=JSON, body=lambda: [body])

    return AnyServer(http_response)


def result(custom_id: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield (
        b'{"id":"r","custom_id":"' + custom_id.encode() + b'","response":{"status_code":200,"body":'
    )
    yield from pieces
    yield b"}}\n"


def by_the_batch(server: AnyServer, n_calls: int) -> list[Call]:
    return [
        call_to(f"{server.address}/v1", f"q{n}", name="openai/candidate") for n in range(n_calls)
    ]


@pytest.mark.parametrize("too_large", [lambda: [HEAD, *([b"x" * MEGABYTE] * 65), TAIL], huge_json])
def test_too_large_a_result_is_read_to_its_bound(
    too_large: Callable[[], Iterable[bytes]], calling: Calling
) -> None:
    def output(ids: list[str]) -> Iterator[bytes]:
        yield from result(ids[0], [HEAD, b"first", TAIL])
        yield from result(ids[1], too_large())
        yield from result(ids[2], [HEAD, b"last", TAIL])

    with batch_server(output) as server:
        merged = asyncio.run(calling.batched(by_the_batch(server, 3)))
        assert server.seen[-1].n_sent < MOST_BYTES + UNDER_WAY
    outcomes = sorted((reply.status, reply.text) for reply in merged.replies)
    assert outcomes == [("ok", "first"), ("too_large", None), ("too_large", None)]
