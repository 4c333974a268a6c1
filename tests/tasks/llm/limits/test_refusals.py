"""A refusal of one request, which stops nothing, and a refusal of every request, which stops the endpoint."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tasks.llm.ledger.ledger import spend_in
from tasks.llm.limiter import ModelStopped
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import DECISION_ROUTES, ROUTES, Calling, Serve, call_to, failed

pytestmark = pytest.mark.usefixtures("hurried")

GOOD = HttpResponse("fine")
Behaviour = Callable[[dict[str, Any], int], HttpResponse]


def raw(status: int, body: Any) -> HttpResponse:
    return HttpResponse(status=status, raw=json.dumps(body).encode())


XAI = {"code": "permission-denied", "error": "Content violates usage guidelines. Failed check: X."}
REFUSALS = {
    **{f"{status}": raw(status, XAI) for status in (401, 402, 403, 404)},
    "403 without JSON": HttpResponse(status=403, raw=b"<html>Forbidden</html>"),
    "403 of a gateway": failed(403, "Blocked by policy."),
    "403 that says flagged": failed(403, "Your input was flagged."),
    "404 for an unknown model": failed(404, "The model does not exist", "model_not_found"),
    "401 for a wrong key": failed(401, "Incorrect API key provided", "invalid_api_key"),
    "401 for a missing key": failed(401, "Missing API key"),
    "200 with a code": raw(200, {"error": {"message": "Forbidden.", "code": 403}}),
    "200 with a code as a text": raw(200, {"error": {"message": "Forbidden.", "code": "403"}}),
    "200 with a code beside the error": raw(200, {"code": 403, "error": "Forbidden."}),
    "200 with a code and a message": raw(200, {"code": 401, "msg": "Not allowed.", "success": False}),
    "500 with a code": raw(500, {"error": {"message": "Forbidden.", "code": 403}}),
    "502 with a status": raw(502, {"error": {"message": "Forbidden.", "status": 404}}),
    "429 with a code": raw(429, {"error": {"message": "Forbidden.", "code": 402}}),
}  # fmt: skip
"""Replies that may mean the key, the account or the model, or only this request."""


def asked(server: FaultServer) -> list[str]:
    """The prompts of a server's requests, in order."""
    return [prompt_of(request) for request in server.book]


def refusing(refusal: HttpResponse, *, also_harmless: HttpResponse = GOOD) -> Behaviour:
    """Refuse prompts that begin with `bad`, and answer a harmless request with `also_harmless`."""

    def behaviour(request: dict[str, Any], _number: int) -> HttpResponse:
        prompt = prompt_of(request)
        if prompt.startswith("bad"):
            return refusal
        return also_harmless if prompt == "Hi" else GOOD

    return behaviour


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_of_one_prompt_is_that_of_its_request(
    refusal: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(REFUSALS[refusal]))
    calling.concurrency = 1

    replies = calling.at_once(*(call_to(server, prompt, **ROUTES[route]) for prompt in ("a", "bad", "b")))

    assert [reply.status for reply in replies] == ["ok", "refused", "ok"]
    assert replies[1].attempts == 1
    assert list(calling.stopped.values()) == [None]
