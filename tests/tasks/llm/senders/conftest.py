"""A cluster of Ray on this machine, with one sender that makes the calls of all tests."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.request import Call
from tasks.llm.senders.cluster import LOCAL, Cluster, SenderProcess
from tasks.llm.senders.pool import RemoteSender, Reply
from tests.tasks.llm.conftest import Calling

PROVIDERS = ("ANTHROPIC", "AZURE", "AZURE_AI", "GEMINI", "MISTRAL", "OPENROUTER")
"""Besides OpenAI, whose key is an ordinary one in the tests of outcomes."""


class OneSender:
    """A sender that lives through all tests, in an event loop of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._start(cluster), self._loop).result()

    async def _start(self, cluster: Cluster) -> None:
        (node,) = cluster.nodes()
        process = cluster.started(SenderProcess, node)
        self._sender = RemoteSender(process, node, await process.get_ready.remote([]))
        self._receiving = asyncio.create_task(self._sender.receive(lambda: None))

    async def __call__(self, call: Call, parameters: Mapping[str, Any]) -> Reply:
        outcomes = asyncio.run_coroutine_threadsafe(self._sender.make(call, parameters), self._loop)
        return await asyncio.wrap_future(outcomes)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._receiving.cancel)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Ray, started on this machine."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
        for name in PROVIDERS:
            patch.setenv(f"{name}_API_KEY", f"sk-planted-{name.lower()}-0123")
        patch.setenv("AZURE_API_VERSION", "2025-01-01")
        cluster = Cluster(LOCAL, 2)
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture(scope="module")
def one_sender(cluster: Cluster) -> Iterator[OneSender]:
    """A sender that is ready."""
    sender = OneSender(cluster)
    yield sender
    sender.close()


@pytest.fixture
def calling(tmp_path: Path, one_sender: OneSender) -> Calling:
    """Calls on a fresh ledger, made by a sender."""
    return Calling(tmp_path / "ledger", sender=one_sender)
