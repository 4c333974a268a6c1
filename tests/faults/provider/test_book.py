"""What goes wrong on the way, and what the book says about it."""

import socket
import time
from collections.abc import Callable

import httpx
import pytest

from tests.faults.provider.clients import chat, opened, post
from tests.faults.server import Answer, Entry, FaultServer

pytestmark = pytest.mark.slow


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


def test_a_connection_that_is_cut_brings_not_one_byte() -> None:
    cutting = FaultServer(lambda _request, _number: Answer("x", cuts_connection=True))
    with cutting as server, opened(server, chat()) as connection:
        assert read_all(connection) == b""


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
