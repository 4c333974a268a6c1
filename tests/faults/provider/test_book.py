"""What goes wrong on the way, and what the book says about it."""

import asyncio
import contextlib
import logging
import resource
import socket
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.faults.provider.clients import chat, opened, post, request_bytes
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


def test_long_texts_that_differ_at_their_end_are_different_requests() -> None:
    with FaultServer() as server:
        for end in "abb":
            post(server, chat("x" * 5000 + end))
    assert [entry.number for entry in server.entries] == [0, 0, 1]


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


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_body_can_stand_still_after_its_first_half(is_streamed: bool) -> None:
    with FaultServer(lambda _request, _number: Answer("word " * 100, body_delay_s=1.5)) as server:
        started_s = time.monotonic()
        with opened(server, chat(stream=is_streamed)) as connection:
            received = connection.recv(65536)
            while b"word" not in received:
                received += connection.recv(65536)
            first_s = time.monotonic() - started_s
            assert fate(server.entries[0]) == (200, True, False)
            wait_for(lambda: server.entries[0].is_delivered)
            last_s = time.monotonic() - started_s
            received += connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert received.count(b"word") >= 95  # an event or a half may end inside a word
    assert first_s < 1.5 <= last_s


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


def test_a_connection_serves_many_requests_and_no_fault_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer("x"), Answer(status=500), Answer("x", cuts_body=True), Answer("x", cuts_connection=True)]
    with caplog.at_level(logging.DEBUG, "aiohttp"), FaultServer(lambda _, number: answers[number % 4]) as server:
        with httpx.Client() as client:
            for number in range(12):
                with pytest.raises(httpx.TransportError) if number % 4 > 1 else contextlib.nullcontext():
                    client.post(f"{server.api_base}/chat/completions", json=chat())
        wait_for(lambda: server.in_hand == 0)
    assert len(server.book) == 12
    assert caplog.records == []


def test_half_a_request_never_arrives(caplog: pytest.LogCaptureFixture) -> None:
    with FaultServer() as server:
        with socket.create_connection(("127.0.0.1", httpx.URL(server.api_base).port or 0)) as connection:
            connection.sendall(request_bytes(chat())[:-20])
            assert post(server, chat("another")).status_code == 200
        assert post(server, chat("another")).status_code == 200
    assert [request["messages"][0]["content"] for request in server.book] == ["another", "another"]
    assert caplog.records == []


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of a connection are in this process, and each is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_at_once_are_all_served() -> None:
    async def ask(number: int, all_are_open: asyncio.Barrier) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await all_are_open.wait()
        writer.write(request_bytes(chat(f"question {number}")))
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return head.splitlines()[0]

    async def ask_all() -> list[bytes]:
        all_are_open = asyncio.Barrier(1000)
        return await asyncio.gather(*(ask(number, all_are_open) for number in range(1000)))

    with FaultServer(lambda _request, _number: Answer("x", delay_s=4)) as server:
        port = httpx.URL(server.api_base).port
        assert asyncio.run(ask_all()) == [b"HTTP/1.1 200 OK"] * 1000
        assert server.most_in_hand == 1000
        assert len(server.paid) == 1000
