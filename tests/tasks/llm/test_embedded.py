"""The embedded model's server: one in a process, for this process alone."""

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasks.llm import embedded

_BOTH_CAME_S = 1.0


@pytest.fixture
def no_server() -> Iterator[None]:
    """Forget a server that this process has started; it goes on for those who know it."""
    before, embedded._started = embedded._started, None
    yield
    embedded._started = before


@pytest.mark.usefixtures("no_server")
def test_two_threads_that_need_the_server_at_once_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    second = threading.Event()

    class Server:
        listening_address = "http://127.0.0.1:1"

        def __init__(self, _parameters: object) -> None:
            started.append(self)
            if len(started) > 1:
                second.set()
            # As a start does, it takes a while, in which another one could begin.
            second.wait(_BOTH_CAME_S)

    parameters = SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())
    library = SimpleNamespace(CommonParams=lambda: parameters, Server=Server)
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    monkeypatch.setattr(embedded, "weights_path", lambda: Path("weights"))
    both = threading.Barrier(2)
    seen: list[Any] = []

    def need() -> None:
        both.wait()
        seen.append(embedded.api_base())

    threads = [threading.Thread(target=need) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["http://127.0.0.1:1/v1"] * 2
    assert len(started) == 1


@pytest.mark.slow
def test_the_server_of_the_embedded_model_answers_this_process_alone() -> None:
    embedded.weights_path()
    parts = urlsplit(embedded.api_base())
    assert parts.hostname == "127.0.0.1"
    assert embedded.count_tokens("two words") > 0

    def asked(method: str, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0)
        body = json.dumps({"content": "a", "prompt": "a", "n_predict": 1}) if method == "POST" else None
        connection.request(method, path, body, headers)
        return connection.getresponse()

    for headers in ({}, {"Host": "evil.example", "Origin": "http://evil.example"}, {"Authorization": "Bearer none"}):
        for path in ("/v1/chat/completions", "/completion", "/tokenize", "/lora-adapters", "/slots/0?action=erase"):
            assert asked("POST", path, **headers, **{"Content-Type": "text/plain"}).status == 401, path
        for path in ("/v1/models", "/props", "/slots", "/metrics"):
            assert asked("GET", path, **headers).status == 401, path
        assert asked("GET", "/", **headers).status in {401, 404}
    for origin in ("http://evil.example", "null"):
        preflight = asked("OPTIONS", "/tokenize", Origin=origin, **{"Access-Control-Request-Method": "POST"})
        assert preflight.headers["Access-Control-Allow-Origin"] not in {origin, "*"}
