"""The last attempt with other parameters: marked, stored as what it was, and never an answer to anybody else."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to, failed

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Behaviour | Answer], FaultServer]
HIGH: dict[str, Any] = {"parameters": {"temperature": 1.0}, "fallback": {"temperature": 0.0}}


def only_low(request: dict[str, Any], _number: int) -> Answer:
    return Answer("low") if request["temperature"] == 0 else failed(500)


def temperatures(server: FaultServer) -> list[float]:
    return [request["temperature"] for request in server.book]


def test_only_the_last_attempt_uses_the_fallback_and_its_reply_is_marked(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 3, serve(only_low)
    reply = calling(call_to(server, **HIGH))
    assert temperatures(server) == [1, 1, 0]
    assert (reply.status, reply.text, reply.degraded, reply.attempts) == ("ok", "low", True, 3)


def test_a_reply_in_full_is_not_marked(calling: Calling, serve: Serve) -> None:
    reply = calling(call_to(serve(Answer("high")), **HIGH))
    assert (reply.status, reply.degraded) == ("ok", False)


def test_a_fallback_that_fails_too_is_a_marked_failure(calling: Calling, serve: Serve) -> None:
    server = serve(failed(500))
    reply = calling(call_to(server, **HIGH))
    assert (reply.status, reply.degraded, temperatures(server)) == ("provider_error", True, [1, 0])


def test_the_next_run_finds_the_fallback_s_reply_for_its_cell_and_marks_it(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 3, serve(only_low)
    call = call_to(server, **HIGH)
    first, again = calling(call), calling(call)
    assert len(server.book) == 3
    assert (again.text, again.degraded, again.cost_usd) == ("low", True, first.cost_usd)


def test_the_next_run_s_row_says_as_many_attempts(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 3, serve(only_low)
    call = call_to(server, **HIGH)
    assert (calling(call).attempts, calling(call).attempts) == (3, 3)


def test_the_fallback_s_reply_is_no_answer_to_another_cell_in_full(calling: Calling, serve: Serve) -> None:
    server = serve(only_low)
    assert calling(call_to(server, cell="a", **HIGH)).degraded
    server.behaviour = lambda _request, _number: Answer("high")
    reply = calling(call_to(server, cell="b", **HIGH))
    assert (reply.text, reply.degraded, temperatures(server)) == ("high", False, [1, 0, 1])


def test_the_fallback_s_reply_answers_a_target_that_asks_for_just_that(calling: Calling, serve: Serve) -> None:
    server = serve(only_low)
    assert calling(call_to(server, cell="a", **HIGH)).degraded
    reply = calling(call_to(server, cell="b", parameters={"temperature": 0.0}))
    assert (reply.text, reply.degraded, len(server.book)) == ("low", False, 2)


def test_two_cells_with_one_request_that_both_fall_back_are_both_marked(calling: Calling, serve: Serve) -> None:
    server = serve(only_low)
    replies = calling.together(*(call_to(server, cell=cell, **HIGH) for cell in "ab"))
    assert [(reply.text, reply.degraded) for reply in replies if isinstance(reply, Reply)] == [("low", True)] * 2
    assert temperatures(server).count(0) == 1


def test_a_failed_row_that_is_tried_again_is_tried_in_full(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 3, serve(failed(500))
    call = call_to(server, **HIGH)

    async def work(gateway: Gateway, ledger: Ledger) -> None:
        reply = await gateway.complete(call)
        ledger.mark_used(list(reply.paid))

    calling.inside(work)
    assert temperatures(server) == [1, 1, 0]
    server.behaviour = lambda _request, _number: Answer("now")
    reply = calling(call)
    assert temperatures(server)[3:] == [1]
    assert (reply.text, reply.degraded, reply.attempts) == ("now", False, 1)
