"""Each request is an attempt of its own, which leaves the ledger once and without any text."""

from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import move_attempts
from tests.faults.behaviours import prompt_of
from tests.faults.server import HttpResponse
from tests.kit import write_calls
from tests.tasks.llm.conftest import (
    ROUTES,
    call_to,
    failed,
    responding_with,
)
from tests.tasks.llm.ledger.conftest import database, entry
from warehouse import WarehouseError

pytestmark = pytest.mark.usefixtures("hurried")


def moved_attempts(folder: Path) -> list[dict[str, Any]]:
    """Move the attempts out of the ledger, and return them."""
    attempts = []
    move_attempts(folder, attempts.extend)
    return attempts


FAULTS = [
    (failed(429, "slow down"), "provider_error", 429),
    (HttpResponse(status=504, raw=b""), "timeout", 504),
    (HttpResponse(cuts_connection=True), "provider_error", None),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("fault", "status", "http_status"), FAULTS)
def test_a_failed_request_is_an_attempt_with_the_status_that_the_server_sent(
    fault,
    status,
    http_status,
    route,
    calling,
    serve,
):
    server = serve(responding_with(fault, HttpResponse("now")))

    calling(call_to(server, cell="a-row", **ROUTES[route]))

    failed_attempt, second_attempt = moved_attempts(calling.folder)
    assert failed_attempt["attempt"] == 1
    assert failed_attempt["row_id"] == "a-row"
    assert failed_attempt["status"] == status
    assert failed_attempt["http_status"] == http_status
    assert failed_attempt["latency_s"] > 0
    assert second_attempt["attempt"] == 2
    assert second_attempt["row_id"] == "a-row"
    assert second_attempt["status"] == "ok"
    assert second_attempt["http_status"] is None
    assert second_attempt["finished_at_s"] >= failed_attempt["finished_at_s"]


def test_a_time_limit_of_ones_own_is_no_status_of_the_server(calling, serve):
    server = serve(
        responding_with(HttpResponse("late", delay_s=90), HttpResponse("now"))
    )

    calling(call_to(server, timeout_s=0.5))

    late_attempt, _ = moved_attempts(calling.folder)
    assert late_attempt["status"] == "timeout"
    assert late_attempt["http_status"] is None


def test_attempts_stay_in_the_ledger_until_they_are_stored(tmp_path):
    write_calls(tmp_path, [entry(1), entry(2)])

    def refuse(_attempts):
        raise WarehouseError("the disk is full")

    with pytest.raises(WarehouseError, match="the disk is full"):
        move_attempts(tmp_path, refuse)

    assert len(moved_attempts(tmp_path)) == 2
    assert moved_attempts(tmp_path) == []


def test_an_outcome_that_is_replaced_is_one_attempt(calling, serve):
    """A 403 is temporary at first, and a refusal of this prompt once a harmless request is
    accepted.
    """

    def only_harmless(request, _number):
        is_harmless = prompt_of(request) == "Hi"
        return HttpResponse("hello") if is_harmless else failed(403, "Forbidden")

    server = serve(only_harmless)

    calling(call_to(server))

    attempts = moved_attempts(calling.folder)
    assert len({attempt["attempt_id"] for attempt in attempts}) == len(attempts)
    assert {attempt["http_status"] for attempt in attempts} == {403}


def test_a_ledger_of_an_earlier_program_gets_the_table_when_it_is_opened(tmp_path):
    write_calls(tmp_path, [entry(1)])
    with database(tmp_path) as connection:
        connection.execute("drop table attempts")

    attempts = moved_attempts(tmp_path)
    write_calls(tmp_path, [entry(2)])
    later_attempts = moved_attempts(tmp_path)

    assert attempts == []
    assert [attempt["row_id"] for attempt in later_attempts] == ["cell-2"]
    assert not list(tmp_path.glob("damaged-*"))


def test_an_attempt_has_no_text_no_secret_and_no_address(calling, serve, monkeypatch):
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-a-secret-of-some-length")
    error = failed(500, "sk-a-secret-of-some-length and words")
    server = serve(responding_with(error, HttpResponse("a reply")))

    calling(call_to(server, "A prompt.", cell="a-row"))

    attempts = moved_attempts(calling.folder)
    assert len(attempts) == 2
    for text in ("secret", "words", "a reply", "A prompt", "127.0.0.1"):
        assert text not in str(attempts)
