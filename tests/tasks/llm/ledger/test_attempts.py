"""Each request is an attempt of its own, which leaves the ledger once and without any text."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import move_attempts
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import call_entry
from tests.tasks.llm.conftest import ROUTES, Calling, Serve, call_to, failed, then, written
from warehouse import WarehouseError

pytestmark = pytest.mark.usefixtures("hurried")


def moved(folder: Path) -> list[dict[str, Any]]:
    """The attempts that leave the ledger."""
    attempts: list[dict[str, Any]] = []
    move_attempts(folder, attempts.extend)
    return attempts


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("fault", "status", "http_status"),
    [
        (failed(429, "slow down"), "provider_error", 429),
        (failed(500, "broken"), "provider_error", 500),
        (failed(529, "overloaded"), "provider_error", 529),
        (HttpResponse(status=504, raw=b""), "timeout", 504),
        (HttpResponse(cuts_connection=True), "provider_error", None),
    ],
)
def test_a_failed_request_is_an_attempt_with_the_status_that_the_server_sent(
    fault: HttpResponse,
    status: str,
    http_status: int | None,
    route: str,
    calling: Calling,
    serve: Serve,
) -> None:
    server = serve(then(fault, HttpResponse("now")))
    calling(call_to(server, cell="a-row", **ROUTES[route]))

    first, second = moved(calling.folder)

    assert first["status"] == status
    assert first["http_status"] == http_status
    assert second["status"] == "ok"
    assert second["http_status"] is None
    assert [first["attempt"], second["attempt"]] == [1, 2]
    assert {first["row_id"], second["row_id"]} == {"a-row"}
    assert min(first["latency_s"], second["latency_s"]) > 0
    assert first["finished_at_s"] <= second["finished_at_s"]


def test_a_time_limit_of_ones_own_is_no_status_of_the_server(
    calling: Calling, serve: Serve
) -> None:
    server = serve(then(HttpResponse("late", delay_s=90), HttpResponse("now")))
    calling(call_to(server, timeout_s=0.5))

    first, *_ = moved(calling.folder)

    assert first["status"] == "timeout"
    assert first["http_status"] is None


def test_attempts_stay_in_the_ledger_until_they_are_stored(tmp_path: Path) -> None:
    written(tmp_path, [call_entry("a"), call_entry("b")])

    def refuse(_attempts: list[dict[str, Any]]) -> None:
        raise WarehouseError("the disk is full")

    with pytest.raises(WarehouseError, match="the disk is full"):
        move_attempts(tmp_path, refuse)

    assert len(moved(tmp_path)) == 2
    assert moved(tmp_path) == []


def test_an_outcome_that_is_replaced_is_one_attempt(calling: Calling, serve: Serve) -> None:
    """A 403 is temporary at first, and a refusal of this prompt once a harmless request is
    accepted.
    """

    def only_harmless(request: Any, _number: int) -> HttpResponse:
        return HttpResponse("hello") if prompt_of(request) == "Hi" else failed(403, "Forbidden")

    server = serve(only_harmless)
    calling(call_to(server))

    attempts = moved(calling.folder)

    assert len({attempt["attempt_id"] for attempt in attempts}) == len(attempts)
    assert {attempt["http_status"] for attempt in attempts} == {403}


def test_a_ledger_of_an_earlier_program_gets_the_table_when_it_is_opened(tmp_path: Path) -> None:
    written(tmp_path, [call_entry("a")])
    with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as connection:
        connection.execute("drop table attempts")

    assert moved(tmp_path) == []

    written(tmp_path, [call_entry("b")])

    assert [attempt["row_id"] for attempt in moved(tmp_path)] == ["c"]
    assert not list(tmp_path.glob("damaged-*"))


def test_an_attempt_has_no_text_and_no_secret(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-a-secret-of-some-length")
    server: FaultServer = serve(
        then(failed(500, "sk-a-secret-of-some-length and words"), HttpResponse("a reply"))
    )
    calling(call_to(server, "A prompt.", cell="a-row"))

    values = {str(value) for attempt in moved(calling.folder) for value in attempt.values()}

    assert not [
        value
        for value in values
        if "secret" in value or "reply" in value or "prompt" in value.lower()
    ]
    assert not [value for value in values if "127.0.0.1" in value]
