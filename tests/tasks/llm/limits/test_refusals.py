"""A refusal of one request, which stops nothing, and a refusal of every request, which stops the
endpoint.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tasks.llm.ledger.ledger import spend_in
from tasks.llm.limiter import ModelStopped
from tasks.llm.request import Prices
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import Patch
from tests.tasks.llm.conftest import DECISION_ROUTES, ROUTES, Calling, Serve, call_to, failed, then

pytestmark = pytest.mark.usefixtures("hurried")

GOOD = HttpResponse("fine")
Behaviour = Callable[[dict[str, Any], int], HttpResponse]


def raw(status: int, body: Any) -> HttpResponse:
    return HttpResponse(status=status, raw=json.dumps(body).encode())


XAI = {"code": "permission-denied", "error": "Content violates usage guidelines. Failed check: X."}
REFUSALS = {
    **{f"{status}": raw(status, XAI) for status in (401, 403, 404)},
    "403 without JSON": HttpResponse(status=403, raw=b"<html>Forbidden</html>"),
    "403 of a gateway": failed(403, "Blocked by policy."),
    "403 that says flagged": failed(403, "Your input was flagged."),
    "200 with a code": raw(200, {"error": {"message": "Forbidden.", "code": 403}}),
    "200 with a code as a text": raw(200, {"error": {"message": "Forbidden.", "code": "403"}}),
    "200 with a code beside the error": raw(200, {"code": 403, "error": "Forbidden."}),
    "200 with a code and a message": raw(
        200,
        {
            "code": 401,
            "msg": "Not allowed.",
            "success": False,
        },
    ),
    "500 with a code": raw(500, {"error": {"message": "Forbidden.", "code": 403}}),
    "502 with a status": raw(502, {"error": {"message": "Forbidden.", "status": 404}}),
}
"""Replies that may mean the key, the account or the model, or only this request."""
OF_THE_ACCOUNT = {
    "402": raw(402, XAI),
    "200 with 402": raw(200, {"error": {"message": "no", "code": 402}}),
    "no credits": failed(402, "Insufficient Balance"),
    "too few credits": failed(402, "This request requires more credits, or fewer max_tokens."),
    "a limit of the key": failed(403, "Key limit exceeded (monthly limit)."),
    "a budget": failed(402, "the remaining budget does not cover this request"),
    "an unknown model": failed(404, "The model does not exist", "model_not_found"),
    "a route": failed(404, "No endpoints found that can handle the requested parameters."),
    "an organization": failed(403, "Your organization must be verified to use the model."),
    "a project": failed(403, "Project `p` does not have access to model `m`."),
    "a wrong key": failed(401, "Incorrect API key provided", "invalid_api_key"),
    "a missing key": failed(401, "Missing API key"),
}
"""Replies whose words are about money, the model or the key."""


def prompts_of(server: FaultServer) -> list[str]:
    """The prompts of a server's requests, in order."""
    return [prompt_of(request) for request in server.book]


def refusing(refusal: HttpResponse, *, also_harmless: HttpResponse = GOOD) -> Behaviour:
    """Refuse prompts that begin with `bad`, and reply to a harmless request with
    `also_harmless`.
    """

    def behaviour(request: dict[str, Any], _number: int) -> HttpResponse:
        prompt = prompt_of(request)
        if prompt.startswith("bad"):
            return refusal
        return also_harmless if prompt == "Hi" else GOOD

    return behaviour


def on_routes(refusals: dict[str, HttpResponse], *on_all: str) -> list[tuple[str, str]]:
    """Return all refusals on one route, and some on all routes."""
    others = [(refusal, route) for refusal in on_all for route in ROUTES if route != "vllm"]
    return [*((refusal, "vllm") for refusal in refusals), *others]


@pytest.mark.parametrize(("refusal", "route"), on_routes(REFUSALS, "403", "200 with a code"))
def test_a_refusal_of_one_prompt_is_that_of_its_request(
    refusal: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(REFUSALS[refusal]))
    calling.concurrency = 1

    replies = calling.at_once(
        *(call_to(server, prompt, **ROUTES[route]) for prompt in ("a", "bad", "b"))
    )

    assert [reply.status for reply in replies] == ["ok", "refused", "ok"]
    assert replies[1].attempts == 2
    assert prompts_of(server).count("bad") == 2
    assert list(calling.stopped.values()) == [None]


@pytest.mark.parametrize("refusal", OF_THE_ACCOUNT)
def test_what_is_about_the_account_is_never_a_refusal_and_the_next_run_tries_again(
    refusal: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(OF_THE_ACCOUNT[refusal]))

    replies = calling.at_once(*(call_to(server, prompt) for prompt in ("a", "bad", "b")))

    assert [reply.status for reply in replies] == ["ok", "provider_error", "ok"]
    assert replies[1].attempts == 1
    assert list(calling.stopped.values()) == [None]
    server.behaviour = lambda _request, _number: GOOD
    calling.spend(replies[1])
    assert calling(call_to(server, "bad")).text == "fine"


def test_if_the_account_allows_none_of_a_few_prompts_the_run_says_so(
    calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(OF_THE_ACCOUNT["a budget"]))

    replies = calling.at_once(*(call_to(server, f"bad {n}") for n in range(8)))

    assert {_status(reply) for reply in replies} == {"provider_error"}
    assert "the remaining budget does not cover" in str(calling.stopped.popitem()[1])


def test_a_request_that_is_accepted_when_it_is_repeated_was_not_refused(
    calling: Calling, serve: Serve
) -> None:
    server = serve(
        lambda request, number: (
            GOOD if number or prompt_of(request) == "Hi" else failed(401, "Unauthorized")
        )
    )

    replies = calling.at_once(*(call_to(server, f"q{n}") for n in range(8)))

    assert {reply.status for reply in replies} == {"ok"}
    assert {reply.attempts for reply in replies} == {2}
    assert all(calling(call_to(server, f"q{n}")).attempts == 2 for n in range(8))


TEMPORARY = {
    "429 with a code": raw(429, {"error": {"message": "Forbidden.", "code": 402}}),
    "429 with earlier errors": raw(
        429,
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {"previous_errors": [{"code": 404}]},
            }
        },
    ),
    "503 with details": raw(
        503,
        {
            "error": {
                "message": "no",
                "code": 503,
                "details": [{"status": 404}],
            }
        },
    ),
    "500 with a quoted error": raw(500, {"detail": "upstream said {'code': 403, 'message': 'x'}"}),
}


@pytest.mark.parametrize("route", ["vllm", "openai"])
@pytest.mark.parametrize("failure", TEMPORARY)
def test_a_code_deep_in_a_body_does_not_make_a_failure_final(
    failure: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(then(TEMPORARY[failure], GOOD))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.attempts == 2


BAD_REQUESTS = {
    "an echo": raw(
        400,
        {
            "error": {"message": "1 validation error"},
            "input": {"code": 404, "type": "content_filter"},
        },
    ),
    "a value": failed(
        400, "Unsupported value: 'content_filter' is not supported for finish_reason"
    ),
}


@pytest.mark.parametrize("failure", BAD_REQUESTS)
def test_a_bad_request_that_only_quotes_a_code_is_no_refusal(
    failure: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(BAD_REQUESTS[failure]))

    reply = calling(call_to(server, "bad"))

    assert reply.status == "provider_error"
    assert reply.attempts == 1
    assert len(server.book) == 1


def test_a_page_in_place_of_an_error_is_said_by_its_title_or_its_words(
    calling: Calling, serve: Serve
) -> None:
    page = (
        "<!DOCTYPE html>\n<html><head><title>Attention Required! |"
        " Cloudflare</title></head><body>no</body></html>"
    )
    untitled = (
        "<html><style>p {}</style><body><p>Sorry, &amp; no</p>" + "<p>x</p>" * 90 + "</body></html>"
    )
    server = serve(
        lambda request, _number: HttpResponse(
            status=403, raw=(page if prompt_of(request) == "titled" else untitled).encode()
        )
    )

    replies = [calling(call_to(server, prompt)) for prompt in ("titled", "untitled")]

    assert str(replies[0].error).endswith(" - Attention Required! | Cloudflare")
    assert " - Sorry, & no x x" in str(replies[1].error)
    assert "<" not in f"{replies[0].error}{replies[1].error}"


EVERY = REFUSALS | OF_THE_ACCOUNT


@pytest.mark.parametrize(("refusal", "route"), on_routes(EVERY, "403", "200 with a code"))
def test_a_refusal_of_every_prompt_stops_the_endpoint_and_refuses_nothing(
    refusal: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(EVERY[refusal])
    calling.concurrency = 1

    replies = calling.at_once(*(call_to(server, f"q{n}", **ROUTES[route]) for n in range(20)))

    assert {getattr(reply, "status", "missing") for reply in replies} == {
        "provider_error",
        "missing",
    }
    assert prompts_of(server).count("Hi") == 1
    assert len(server.book) <= 4
    assert sum(isinstance(reply, ModelStopped) for reply in replies) == 21 - len(server.book)
    assert 'a harmless request ("Hi") was refused' in str(calling.stopped.popitem()[1])


def test_the_line_says_what_was_asked_and_replied(calling: Calling, serve: Serve) -> None:
    server = serve(
        refusing(failed(403, "No such content."), also_harmless=failed(402, "Pay first."))
    )

    reply = calling(call_to(server, "bad"))

    [line] = calling.stopped.values()
    assert reply.status == "provider_error"
    assert line is not None
    assert (
        line.index("No such content.") < line.index("harmless request") < line.index("Pay first.")
    )


UNKNOWN = {
    "429": failed(429, "slow down"),
    "500": failed(500, "broken"),
    "503": failed(503, "overloaded"),
    "cut": HttpResponse(cuts_connection=True),
    "400": failed(400, "max_tokens must be 16 or more"),
    "a code for a filter": failed(400, "no", "content_filter"),
}


@pytest.mark.parametrize("harmless", UNKNOWN)
def test_a_refusal_is_temporary_if_the_harmless_request_fails_for_another_reason(
    harmless: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(403, "No."), also_harmless=UNKNOWN[harmless]))

    replies = calling.at_once(*(call_to(server, prompt) for prompt in ("a", "bad", "b")))

    assert [reply.status for reply in replies] == ["ok", "provider_error", "ok"]
    assert replies[1].attempts == 1
    assert list(calling.stopped.values()) == [None]
    server.behaviour = lambda _request, _number: GOOD
    calling.spend(replies[1])
    assert calling(call_to(server, "bad")).text == "fine"


@pytest.mark.parametrize("harmless", UNKNOWN)
def test_if_nothing_is_accepted_the_run_says_so_and_asks_each_prompt_once(
    harmless: str, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(403, "No."), also_harmless=UNKNOWN[harmless]))

    replies = calling.at_once(*(call_to(server, f"bad {n}") for n in range(8)))

    assert {_status(reply) for reply in replies} == {"provider_error"}
    assert len(server.book) - prompts_of(server).count("Hi") == 8
    assert "No." in str(calling.stopped.popitem()[1])


def test_a_harmless_request_is_like_the_one_that_was_refused(
    calling: Calling, serve: Serve
) -> None:
    server = serve(
        lambda request, _number: failed(403, "No.") if "response_format" in request else GOOD
    )
    schema = {"type": "json_schema", "json_schema": {"name": "v", "schema": {"type": "object"}}}
    call = call_to(server, parameters={"temperature": 0.5, "max_tokens": 99})

    reply = calling(replace(call, response_format=schema))

    assert reply.status == "provider_error"
    assert None not in calling.stopped.values()
    assert server.book[1]["response_format"] == server.book[0]["response_format"]
    assert server.book[1]["temperature"] == 0.5
    assert server.book[1]["max_tokens"] == 1


def test_a_harmless_request_to_the_responses_api_is_not_too_short_for_it(
    calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(403, "No.")))

    calling(call_to(server, "bad", **ROUTES["responses"]))

    assert [request.get("max_output_tokens") for request in server.book] == [None, 16, None]


@pytest.mark.parametrize("concurrency", [1, 16])
def test_the_next_call_that_succeeds_settles_a_refusal(
    concurrency: int, calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tasks.llm.endpoint_health.BETWEEN_HARMLESS_S", 1e6)
    server = serve(refusing(failed(403, "No.")))
    calling.concurrency = concurrency
    prompts = [
        *(f"bad {n}" if n % 2 else f"good {n}" for n in range(60)),
        *(f"good {n}" for n in range(60, 80)),
    ]

    replies = calling.at_once(*(call_to(server, prompt) for prompt in prompts))

    assert [reply.status for reply in replies] == [*["ok", "refused"] * 30, *["ok"] * 20]
    assert prompts_of(server).count("Hi") == 1


def test_few_refusals_of_all_prompts_share_a_harmless_request(
    calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(403, "No.")))

    replies = calling.at_once(*(call_to(server, f"bad {n}") for n in range(8)))

    assert {reply.status for reply in replies} == {"refused"}
    assert 1 <= prompts_of(server).count("Hi") <= 3


@pytest.mark.parametrize("concurrency", [1, 16])
def test_refusals_of_all_first_prompts_stop_the_endpoint_and_refuse_nothing(
    concurrency: int, calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(403, "No.")))
    calling.concurrency = concurrency

    replies = calling.at_once(*(call_to(server, f"bad {n}") for n in range(200)))

    assert {_status(reply) for reply in replies} == {"provider_error", "missing"}
    assert len(server.book) < 120
    assert "calls were all refused, the last: " in str(calling.stopped.popitem()[1])


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_key_that_is_revoked_in_between_refuses_nothing(
    concurrency: int, calling: Calling, serve: Serve
) -> None:
    def revoked_after_40(request: dict[str, Any], _number: int) -> HttpResponse:
        if prompt_of(request).startswith("bad") or len(server.book) > 40:
            return raw(403, XAI)
        return replace(GOOD, delay_s=0.01)

    server = serve(revoked_after_40)
    calling.concurrency = concurrency
    prompts = [f"bad {n}" if n % 10 == 5 else f"good {n}" for n in range(200)]

    replies = calling.at_once(*(call_to(server, prompt) for prompt in prompts))

    refused = [
        prompt
        for prompt, reply in zip(prompts, replies, strict=True)
        if _status(reply) == "refused"
    ]
    assert refused
    assert all(prompt.startswith("bad") for prompt in refused)
    assert len(server.book) < 80
    assert None not in calling.stopped.values()


def _status(reply: Any) -> str:
    return str(getattr(reply, "status", "missing"))


def test_a_harmless_request_counts_as_spend_of_its_purpose(calling: Calling, serve: Serve) -> None:
    server = serve(refusing(failed(403, "No.")))
    calling.max_usd = 1.0

    calling(call_to(server, "bad", prices=Prices(1e4, None, 1e4), parameters={"max_tokens": 5}))

    [spend] = spend_in(calling.folder)
    assert spend["calls"] == 3
    assert spend["failed_calls"] == 2
    assert spend["cost_usd"] > 0
    assert calling.limiter.budget.used_usd == spend["cost_usd"]


def test_first_prompts_that_are_all_bad_requests_do_not_stop_a_model_that_accepts_others(
    calling: Calling, serve: Serve
) -> None:
    server = serve(refusing(failed(400, "odd")))
    calling.concurrency = 1
    prompts = [*(f"bad {n}" for n in range(9)), "good"]

    replies = calling.at_once(*(call_to(server, prompt) for prompt in prompts))

    assert [reply.status for reply in replies] == [*["provider_error"] * 9, "ok"]
    assert prompts_of(server).count("Hi") == 1


REFUSED_CONTENT = {
    "DeepSeek": raw(
        400, {"error": {"message": "Content Exists Risk", "code": "invalid_request_error"}}
    ),
    "DashScope": raw(
        400, {"code": "DataInspectionFailed", "message": "Input data may contain no such thing."}
    ),
    "DashScope, as OpenAI": raw(
        400, {"error": {"code": "data_inspection_failed", "message": "no"}}
    ),
    "Zhipu": raw(
        400,
        {
            "error": {"code": "1301", "message": "no"},
            "contentFilter": [{"level": 1, "role": "user"}],
        },
    ),
    "Zhipu, a number": raw(400, {"error": {"code": 1301, "message": "no"}}),
    "Moonshot": raw(400, {"error": {"message": "considered high risk", "type": "content_filter"}}),
    "Volcengine": raw(
        400, {"error": {"code": "InputTextSensitiveContentDetected", "message": "no"}}
    ),
    "StepFun": raw(451, {"error": {"message": "blocked", "type": "censorship_blocked"}}),
    "Gemini": failed(
        400, "It contains sensitive words that violate Google's Responsible AI practices."
    ),
    "a guardrail": failed(400, "Request blocked by guardrail policy", kind="guardrail_violation"),
    "a proxy": failed(400, "litellm.ContentPolicyViolationError: AzureException - x", "400"),
    "Baidu": raw(400, {"error_code": 336104, "error_msg": "no"}),
    "Baidu with 200": raw(200, {"error_code": 336104, "error_msg": "no"}),
    "MiniMax": raw(
        200, {"base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}, "choices": None}
    ),
    "Anthropic": raw(400, {"error": {"message": "Output blocked by content filtering policy"}}),
    "OpenAI": failed(
        400, "Your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"
    ),
    "a code with 403": failed(403, "no", "content_policy_violation"),
    "a code with 401": failed(401, "no", "content_filter"),
    "a code with 500": failed(500, "no", "data_inspection_failed"),
    "a code with 200": raw(200, {"error": {"code": "data_inspection_failed", "message": "no"}}),
}


@pytest.mark.parametrize(
    ("refusal", "route"), on_routes(REFUSED_CONTENT, "DeepSeek", "a code with 200")
)
def test_a_known_refusal_of_content_needs_no_harmless_request(
    refusal: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(REFUSED_CONTENT[refusal])

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "refused"
    assert reply.attempts == 1
    assert len(server.book) == 1
    assert list(calling.stopped.values()) == [None]


def test_an_account_that_was_flagged_is_no_refusal_of_content(
    calling: Calling, serve: Serve
) -> None:
    server = serve(failed(403, "Your account was flagged for review."))

    assert calling(call_to(server)).status == "provider_error"
    assert None not in calling.stopped.values()


@pytest.mark.parametrize("route", DECISION_ROUTES)
def test_a_refusal_stops_at_once_what_has_no_call_of_one_token(
    route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(failed(403, "No."))

    reply = calling(call_to(server, **DECISION_ROUTES[route]))

    assert reply.status == "provider_error"
    assert len(server.book) == 1
    assert None not in calling.stopped.values()
