"""The provider as clients see it, its book, and the provider as a process of its own."""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.faults.behaviours import BookedRequest, seeded_faults
from tests.faults.process import ServerProcess
from tests.faults.server import Entry, FaultServer, HttpResponse, Request

pytestmark = pytest.mark.slow


def chat(content: str = "What is a bond?", **more: Any) -> Request:
    """A request for a chat completion."""
    return {"model": "candidate", "messages": [{"role": "user", "content": content}], **more}


def post(server: FaultServer | ServerProcess, request: object, path: str = "/chat/completions") -> httpx.Response:
    """Send a plain request, and return the response as it came."""
    return httpx.post(server.api_base + path, content=json.dumps(request), timeout=60)


def test_what_fails_depends_on_the_seed_the_request_and_its_number_alone() -> None:
    requests, behaviour = [chat(f"question {number}") for number in range(4000)], seeded_faults(7, 0.5)
    expected = [behaviour(request, 0) for request in requests]
    assert [seeded_faults(7, 0.5)(BookedRequest(request), 0) for request in reversed(requests)] == expected[::-1]
    for other in (seeded_faults(8, 0.5), lambda request, _number: behaviour(request, 1)):
        same = sum(
            other(request, 0) == http_response for request, http_response in zip(requests, expected, strict=True)
        )
        assert 0.2 < same / len(requests) < 0.4


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s, "it never came"
        time.sleep(0.01)


def fate(entry: Entry) -> tuple[int | None, bool, bool]:
    return entry.status, entry.is_paid, entry.is_delivered


@pytest.mark.parametrize(
    ("http_response", "expected"),
    [
        (HttpResponse("x"), (200, True, True)), (HttpResponse("x", choices=0), (200, False, True)),
        (HttpResponse(status=500), (500, False, True)), (HttpResponse(raw=b"{}"), (200, False, True)),
        (HttpResponse("x", cuts_connection=True), (None, False, False)),
        (HttpResponse("x", cuts_body=True), (200, True, False)),
        (HttpResponse(status=500, cuts_body=True), (500, False, False))
    ]
)  # fmt: skip
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_book_knows_what_is_paid_and_what_was_delivered(
    http_response: HttpResponse, expected: tuple[int | None, bool, bool], is_streamed: bool
) -> None:
    with FaultServer(lambda _request, _number: http_response) as server:
        try:
            post(server, chat(stream=is_streamed))
        except httpx.TransportError:
            assert not expected[2]
        wait_for(lambda: server.entries[0].responded_at_s is not None)
        assert [expected] == [fate(entry) for entry in server.entries]
        assert server.paid == [entry for entry in server.entries if expected[1]]
        assert 0 == server.in_hand


def test_a_client_that_gives_up_still_pays_for_what_was_made_for_it() -> None:
    with FaultServer(lambda _request, _number: HttpResponse("late", delay_s=0.4)) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.api_base}/chat/completions", json=chat(), timeout=0.1)
        assert ((None, False, False), 1) == (fate(server.entries[0]), server.in_hand)
        wait_for(lambda: server.in_hand == 0)
        assert (200, True, False) == fate(server.entries[0])
