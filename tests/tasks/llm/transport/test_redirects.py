"""Redirects: never followed, whatever the route; nothing reaches the other server, and no later run tries again."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tasks.llm.budget import Budget
from tasks.llm.calls.batches import Batching
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import ModelStopped
from tasks.llm.replies import Reply
from tasks.rules.errors import PipelineError
from tests.faults.anything import AnyServer, Plain, Seen
from tests.tasks.llm.conftest import Calling, call_to

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

Redirecting = Callable[[int, str], AnyServer]
ROUTES: dict[str, dict[str, Any]] = {
    "vllm": {"name": "hosted_vllm/candidate"},
    "vllm-streamed": {"name": "hosted_vllm/candidate", "is_streamed": True},
    "openai": {"name": "openai/candidate"},
    "openai-streamed": {"name": "openai/candidate", "is_streamed": True},
    "responses": {"name": "openai/candidate", "parameters": {"api": "responses"}},
    "azure": {"name": "azure/candidate"},
    "azure-streamed": {"name": "azure/candidate", "is_streamed": True},
    "azure_ai": {"name": "azure_ai/candidate"},
    "anthropic": {"name": "anthropic/candidate", "parameters": {"max_tokens": 9}},
    "anthropic-streamed": {"name": "anthropic/candidate", "parameters": {"max_tokens": 9}, "is_streamed": True},
    "gemini": {"name": "gemini/candidate"},
    "mistral": {"name": "mistral/candidate"},
    "openrouter": {"name": "openrouter/candidate"},
    "ollama_chat": {"name": "ollama_chat/candidate"},
}
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE", "AZURE_AI", "ANTHROPIC", "GEMINI", "MISTRAL", "OPENROUTER"):
        monkeypatch.setenv(f"{name}_API_KEY", f"sk-planted-{name.lower()}-0123")
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01")


@pytest.fixture
def elsewhere() -> Iterator[AnyServer]:
    """The other server, which is to hear nothing. It would answer as a provider does."""
    choice = b'{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}'
    body = b'{"id":"x","object":"chat.completion","choices":[' + choice + b"]}"
    with AnyServer(Plain(headers={"Content-Type": "application/json"}, body=lambda: [body]), "localhost") as server:
        yield server


def away(status: int, location: str) -> Plain:
    return Plain(status, {"Location": location, "Content-Length": "0"})


@pytest.mark.parametrize(
    ("route", "status"), [*((route, 307) for route in ROUTES), *(("vllm", s) for s in STATUSES), ("openai", 302)]
)
def test_a_redirect_is_a_failure_at_once_and_the_other_server_hears_nothing(
    route: str, status: int, calling: Calling, elsewhere: AnyServer
) -> None:
    calling.attempts = 4
    with AnyServer(away(status, f"{elsewhere.address}/v1/chat/completions?key=told")) as server:
        call = call_to(f"{server.address}/v1", headers={"X-Team-Token": "blue"}, **ROUTES[route])
        reply = calling(call)
        assert (reply.status, reply.text, reply.attempts, reply.cost_usd) == ("redirected", None, 1, None)
        assert reply.error is not None
        assert f"HTTP {status}" in reply.error
        assert elsewhere.address.removeprefix("http://") in reply.error
        assert "told" not in reply.error
        assert len(server.seen) == 1
    assert elsewhere.seen == []


def test_a_redirect_loop_is_one_request(calling: Calling) -> None:
    with AnyServer(lambda seen: away(302, seen.path)) as server:
        assert calling(call_to(f"{server.address}/v1")).status == "redirected"
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    "location", ["", "http://[", "//", "ftp://x/", "http://user:sk-planted@x/", "http://\u202ex/", "relative"]
)
def test_a_location_that_is_none_is_no_reason_to_try_again(location: str, calling: Calling) -> None:
    plain = Plain(302, {"Location": location.encode().decode("latin-1"), "Content-Length": "0"})
    with AnyServer(plain) as server:
        reply = calling(call_to(f"{server.address}/v1"))
        assert (reply.status, len(server.seen)) == ("redirected", 1)
    assert reply.error is not None
    assert reply.error.isascii()
    assert "sk-planted" not in reply.error


def test_an_endpoint_that_redirects_is_stopped_in_a_line_with_its_host(calling: Calling, elsewhere: AnyServer) -> None:
    calling.concurrency = 1
    with AnyServer(away(307, elsewhere.address)) as server:
        replies = calling.together(*(call_to(f"{server.address}/v1", f"q{n}") for n in range(9)))
        assert len(server.seen) == 1
    assert isinstance(replies[0], Reply)
    assert all(isinstance(reply, ModelStopped) for reply in replies[1:])
    (reason,) = [reason for reason in calling.stopped.values() if reason]
    assert elsewhere.address.removeprefix("http://") in reason
    assert "\n" not in reason


@pytest.mark.parametrize("moved", ["/v1/files", "/v1/batches", "/v1/batches/b", "/v1/files/f/content"])
def test_no_step_of_a_batch_follows_a_redirect(moved: str, calling: Calling, elsewhere: AnyServer) -> None:
    shape = {"object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": "f", "completion_window": "24h"}
    batch = {**shape, "id": "b", "status": "completed", "created_at": 1, "output_file_id": "f"}
    file = {
        "id": "f", "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch",
        "status": "processed",
    }  # fmt: skip

    def answer(seen: Seen) -> Plain:
        if seen.path == moved:
            return away(307, f"{elsewhere.address}{seen.path}")
        body = json.dumps(file if seen.path == "/v1/files" else batch).encode()
        return Plain(headers={"Content-Type": "application/json"}, body=lambda: [body])

    async def work(_: Gateway, ledger: Ledger) -> None:
        call = call_to(f"{server.address}/v1", name="openai/candidate")
        await Batching(call.target, ledger, Budget(None, None), "a-run").submit_and_collect([call], 0.1)

    with AnyServer(answer) as server, pytest.raises(PipelineError, match="redirects to localhost"):
        calling.inside(work)
    assert elsewhere.seen == []


def test_other_clients_of_the_process_follow_redirects_as_before(elsewhere: AnyServer) -> None:
    import httpx

    with AnyServer(away(307, elsewhere.address)) as server:
        assert httpx.get(server.address, follow_redirects=True).status_code == 200
    assert len(elsewhere.seen) == 1
