"""A refusal of one request, which stops nothing, and a refusal of every request, which stops the
endpoint.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tasks.llm.ledger.ledger import spend_in
from tasks.llm.limiter import NotCalled
from tasks.llm.request import Prices
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import (
    DECISION_ROUTES,
    ROUTES,
    Behaviour,
    Calling,
    call_to,
    calls_to,
    failed,
    json_body,
    prompts_at,
    responding_with,
)

pytestmark = pytest.mark.usefixtures("hurried")

GOOD = HttpResponse("fine")


def error_body(http_status: int = 200, /, **error: Any) -> HttpResponse:
    """A response with this error, without the other fields of OpenAI's format."""
    return json_body({"error": error}, http_status)


VIOLATION = {
    "code": "permission-denied",
    "error": "Content violates usage guidelines. Failed check: X.",
}
"""The body of a refusal by xAI."""
REFUSALS = {
    "401": json_body(VIOLATION, 401),
    "403": json_body(VIOLATION, 403),
    "404": json_body(VIOLATION, 404),
    "403 without JSON": HttpResponse(status=403, raw=b"<html>Forbidden</html>"),
    "403 of a gateway": failed(403, "Blocked by policy."),
    "403 that says flagged": failed(403, "Your input was flagged."),
    "200 with a code": error_body(message="Forbidden.", code=403),
    "200 with a code as a text": error_body(message="Forbidden.", code="403"),
    "200 with a code beside the error": json_body(
        {"code": 403, "error": "Forbidden."}
    ),
    "200 with a code and a message": json_body({"code": 401, "msg": "Not allowed."}),
    "500 with a code": error_body(500, message="Forbidden.", code=403),
    "502 with a status": error_body(502, message="Forbidden.", status=404),
}
"""Replies that may mean the key, the account or the model, or only this request."""
ACCOUNT_FAILURES = {
    "402": json_body(VIOLATION, 402),
    "200 with 402": error_body(message="no", code=402),
    "no credits": failed(402, "Insufficient Balance"),
    "too few credits": failed(
        402, "This request requires more credits, or fewer max_tokens."
    ),
    "a limit of the key": failed(403, "Key limit exceeded (monthly limit)."),
    "a budget": failed(402, "the remaining budget does not cover this request"),
    "an unknown model": failed(404, "The model does not exist", "model_not_found"),
    "a route": failed(
        404, "No endpoints found that can handle the requested parameters."
    ),
    "an organization": failed(
        403, "Your organization must be verified to use the model."
    ),
    "a project": failed(403, "Project `p` does not have access to model `m`."),
    "a wrong key": failed(401, "Incorrect API key provided", "invalid_api_key"),
    "a missing key": failed(401, "Missing API key"),
}
"""Replies whose words are about money, the model or the key."""


def refusing(
    refusal: HttpResponse,
    *,
    also_harmless: HttpResponse = GOOD,
) -> Behaviour:
    """Refuse prompts that begin with `bad`, and reply to a harmless request with
    `also_harmless`.
    """

    def behaviour(request, _number):
        prompt = prompt_of(request)
        if prompt.startswith("bad"):
            return refusal
        return also_harmless if prompt == "Hi" else GOOD

    return behaviour


REFUSING = refusing(failed(403, "No."))


def bad_prompts(n_prompts: int) -> list[str]:
    return [f"bad {number}" for number in range(n_prompts)]


def replies_to(
    prompts: Iterable[str],
    calling: Calling,
    server: FaultServer,
    **target: Any,
) -> list[Any]:
    """Return the replies to prompts, or the exceptions in their place, of calls at the same time."""
    return calling.call_at_once(
        *(call_to(server, prompt, **target) for prompt in prompts)
    )


def statuses_of(replies: Iterable[Any]) -> list[str]:
    """The status of each reply; `missing` for an exception in its place."""
    return [getattr(reply, "status", "missing") for reply in replies]


def n_harmless_requests(server: FaultServer) -> int:
    return prompts_at(server).count("Hi")


def on_routes(
    refusals: Iterable[str], on_all: Sequence[str]
) -> list[tuple[str, str]]:
    """Pair all refusals with one route, and some with all routes."""
    pairs = [(refusal, "vllm") for refusal in refusals]
    for route in ROUTES.keys() - {"vllm"}:
        pairs += [(refusal, route) for refusal in on_all]
    return sorted(pairs)


# a request that is refused alone


@pytest.mark.parametrize(
    ("refusal", "route"), on_routes(REFUSALS, ["403", "200 with a code"])
)
def test_a_refusal_of_one_prompt_is_that_of_its_request(
    refusal, route, calling, serve
):
    server = serve(refusing(REFUSALS[refusal]))
    calling.concurrency = 1

    replies = replies_to(["a", "bad", "b"], calling, server, **ROUTES[route])

    assert statuses_of(replies) == ["ok", "refused", "ok"]
    assert replies[1].attempts == 2
    assert prompts_at(server).count("bad") == 2
    assert calling.reason_to_stop is None


def test_a_request_that_is_accepted_when_it_is_repeated_was_not_refused(
    calling, serve
):
    def refuse_at_first(request, number):
        if number == 0 and prompt_of(request) != "Hi":
            return failed(401, "Unauthorized")
        return GOOD

    server = serve(refuse_at_first)

    replies = calling.call_at_once(*calls_to(server, 8))
    later_replies = calling.call_at_once(*calls_to(server, 8))

    assert statuses_of(replies) == ["ok"] * 8
    assert [reply.attempts for reply in replies] == [2] * 8
    assert [reply.attempts for reply in later_replies] == [2] * 8


HARMLESS_FAILURES = {
    "429": failed(429, "slow down"),
    "500": failed(500, "broken"),
    "cut": HttpResponse(cuts_connection=True),
    "400": failed(400, "max_tokens must be 16 or more"),
    "a code for a filter": failed(400, "no", "content_filter"),
}
"""Replies to a harmless request that leave open whether the request before it is refused."""
OPEN_QUESTIONS = {
    name: (failed(403, "No."), harmless)
    for name, harmless in HARMLESS_FAILURES.items()
}
"""Name -> a refusal, and the reply to a harmless request."""
POSSIBLY_OF_ACCOUNT = OPEN_QUESTIONS | {
    name: (failure, GOOD) for name, failure in ACCOUNT_FAILURES.items()
}


@pytest.mark.parametrize(
    ("refusal", "harmless"),
    POSSIBLY_OF_ACCOUNT.values(),
    ids=POSSIBLY_OF_ACCOUNT,
)
def test_a_failure_that_may_be_of_the_account_is_tried_again_by_the_next_run(
    refusal,
    harmless,
    calling,
    serve,
):
    server = serve(refusing(refusal, also_harmless=harmless))

    replies = replies_to(["a", "bad", "b"], calling, server)
    reason_to_stop = calling.reason_to_stop
    server.behaviour = responding_with(GOOD)
    calling.mark_spent(replies[1])
    later_reply = calling(call_to(server, "bad"))

    assert statuses_of(replies) == ["ok", "provider_error", "ok"]
    assert replies[1].attempts == 1
    assert reason_to_stop is None
    assert later_reply.text == "fine"


BUDGET_OR_OPEN = OPEN_QUESTIONS | {"a budget": POSSIBLY_OF_ACCOUNT["a budget"]}


@pytest.mark.parametrize(
    ("refusal", "harmless"),
    BUDGET_OR_OPEN.values(),
    ids=BUDGET_OR_OPEN,
)
def test_if_the_account_allows_no_prompt_the_run_says_so_and_sends_each_once(
    refusal,
    harmless,
    calling,
    serve,
):
    server = serve(refusing(refusal, also_harmless=harmless))

    replies = replies_to(bad_prompts(8), calling, server)

    assert statuses_of(replies) == ["provider_error"] * 8
    assert len(server.book) - n_harmless_requests(server) == 8
    assert replies[0].error in str(calling.reason_to_stop)


TEMPORARY = {
    "429 with a code": error_body(429, message="Forbidden.", code=402),
    "429 with earlier errors": error_body(
        429,
        message="Provider returned error",
        code=429,
        metadata={"previous_errors": [{"code": 404}]},
    ),
    "503 with details": error_body(
        503, message="no", code=503, details=[{"status": 404}]
    ),
    "500 with a quoted error": json_body(
        {"detail": "upstream said {'code': 403, 'message': 'x'}"}, 500
    ),
}


@pytest.mark.parametrize("route", ["vllm", "openai"])
@pytest.mark.parametrize("failure", TEMPORARY)
def test_a_code_deep_in_a_body_does_not_make_a_failure_final(
    failure,
    route,
    calling,
    serve,
):
    server = serve(responding_with(TEMPORARY[failure], GOOD))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.attempts == 2


BAD_REQUESTS = {
    "an echo": json_body(
        {
            "error": {"message": "1 validation error"},
            "input": {"code": 404, "type": "content_filter"},
        },
        400,
    ),
    "a value": failed(
        400,
        "Unsupported value: 'content_filter' is not supported for finish_reason",
    ),
}


@pytest.mark.parametrize("failure", BAD_REQUESTS)
def test_a_bad_request_that_only_quotes_a_code_is_no_refusal(failure, calling, serve):
    server = serve(refusing(BAD_REQUESTS[failure]))

    reply = calling(call_to(server, "bad"))

    assert reply.status == "provider_error"
    assert reply.attempts == 1
    assert len(server.book) == 1


TITLE = "Attention Required! | Cloudflare"
PAGES = [
    (
        f"<!DOCTYPE html>\n<html><head><title>{TITLE}</title></head><body>no</body></html>",
        TITLE,
    ),
    (
        "<html><style>p {}</style><body><p>Sorry, &amp; no</p>" + "<p>x</p>" * 90,
        "Sorry, & no" + " x" * 90,
    ),
]


@pytest.mark.parametrize(("page", "text"), PAGES, ids=["with a title", "without one"])
def test_a_page_in_place_of_an_error_is_shown_by_its_title_or_its_words(
    page,
    text,
    calling,
    serve,
):
    server = serve(HttpResponse(status=403, raw=page.encode()))

    reply = calling(call_to(server))

    assert f" - {text}" in str(reply.error)
    assert "<" not in str(reply.error)


# an endpoint that refuses every request


ALL_REFUSALS = REFUSALS | ACCOUNT_FAILURES


@pytest.mark.parametrize(
    ("refusal", "route"), on_routes(ALL_REFUSALS, ["403", "200 with a code"])
)
def test_a_refusal_of_every_prompt_stops_the_endpoint_and_refuses_nothing(
    refusal,
    route,
    calling,
    serve,
):
    server = serve(ALL_REFUSALS[refusal])
    calling.concurrency = 1

    replies = calling.call_at_once(*calls_to(server, 20, **ROUTES[route]))

    assert set(statuses_of(replies)) == {"provider_error", "missing"}
    n_calls = len(server.book) - 1  # one is the harmless request
    n_stopped = sum(isinstance(reply, NotCalled) for reply in replies)
    assert n_harmless_requests(server) == 1
    assert n_calls <= 3
    assert n_stopped == 20 - n_calls
    assert 'a harmless request ("Hi") was refused' in str(calling.reason_to_stop)


def test_the_reason_has_the_errors_of_both_requests(calling, serve):
    refusal = failed(403, "No such content.")
    server = serve(refusing(refusal, also_harmless=failed(402, "Pay first.")))

    reply = calling(call_to(server, "bad"))

    reason = str(calling.reason_to_stop)
    error, _, harmless_error = reason.partition("; a harmless request")
    assert reply.status == "provider_error"
    assert "No such content." in error
    assert "Pay first." in harmless_error


def test_a_harmless_request_is_like_the_one_that_was_refused(calling, serve):
    server = serve(failed(403, "No."))
    schema = {
        "type": "json_schema",
        "json_schema": {"name": "v", "schema": {"type": "object"}},
    }
    call = call_to(server, parameters={"temperature": 0.5, "max_tokens": 99})

    calling(replace(call, response_format=schema))

    refused_request, harmless_request = server.book
    assert harmless_request["response_format"] == refused_request["response_format"]
    assert harmless_request["temperature"] == 0.5
    assert harmless_request["max_tokens"] == 1


def test_a_harmless_request_to_the_responses_api_is_not_too_short_for_it(
    calling,
    serve,
):
    server = serve(REFUSING)

    calling(call_to(server, "bad", **ROUTES["responses"]))

    limits = [request.get("max_output_tokens") for request in server.book]
    assert limits == [None, 16, None]


@pytest.mark.parametrize("concurrency", [1, 16])
def test_the_next_call_that_succeeds_settles_a_refusal(
    concurrency,
    calling,
    serve,
    monkeypatch,
):
    monkeypatch.setattr("tasks.llm.endpoint_health.BETWEEN_HARMLESS_S", 1e6)
    server = serve(REFUSING)
    calling.concurrency = concurrency
    prompts = []
    for number in range(30):
        prompts += [f"good {number}", f"bad {number}"]
    # So many that some succeed after the last refusal also on a busy machine.
    prompts += [f"good {number}" for number in range(30, 230)]

    replies = replies_to(prompts, calling, server)

    assert statuses_of(replies) == ["ok", "refused"] * 30 + ["ok"] * 200
    assert n_harmless_requests(server) == 1


def test_few_refusals_of_all_prompts_share_a_harmless_request(calling, serve):
    server = serve(REFUSING)

    replies = replies_to(bad_prompts(8), calling, server)

    assert statuses_of(replies) == ["refused"] * 8
    assert 1 <= n_harmless_requests(server) < 8  # one for each would be 8


@pytest.mark.parametrize("concurrency", [1, 16])
def test_refusals_of_all_first_prompts_stop_the_endpoint_and_refuse_nothing(
    concurrency,
    calling,
    serve,
):
    server = serve(refusing(replace(failed(403, "No."), delay_s=0.05)))
    calling.concurrency = concurrency

    replies = replies_to(bad_prompts(200), calling, server)

    assert set(statuses_of(replies)) == {"provider_error", "missing"}
    assert len(server.book) < 120  # without the stop all 200 calls would be made
    assert "calls were all refused, the last: " in str(calling.reason_to_stop)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_key_that_is_revoked_in_between_refuses_nothing(
    concurrency, calling, serve
):
    def revoke_after_40(request, _number):
        if prompt_of(request).startswith("bad") or len(server.book) > 40:
            return replace(json_body(VIOLATION, 403), delay_s=0.05)
        return replace(GOOD, delay_s=0.01)

    server = serve(revoke_after_40)
    calling.concurrency = concurrency
    prompts = [f"good {number}" for number in range(200)]
    prompts[5::10] = bad_prompts(20)

    replies = replies_to(prompts, calling, server)

    refused_prompts = {
        prompt
        for prompt, status in zip(prompts, statuses_of(replies), strict=True)
        if status == "refused"
    }
    assert refused_prompts
    assert refused_prompts <= {*bad_prompts(20)}
    assert len(server.book) < 80  # without the stop all 200 calls would be made
    assert calling.reason_to_stop is not None


def test_a_harmless_request_counts_as_spend_of_its_purpose(calling, serve):
    server = serve(REFUSING)
    calling.max_usd = 1.0
    prices = Prices(1e4, None, 1e4)

    calling(call_to(server, "bad", prices=prices, parameters={"max_tokens": 5}))

    [spend] = spend_in(calling.folder)
    assert spend["calls"] == 3
    assert spend["failed_calls"] == 2
    assert spend["cost_usd"] > 0
    assert calling.limiter.budget.used_usd == spend["cost_usd"]


def test_first_prompts_that_are_all_bad_requests_do_not_stop_a_model_that_accepts_others(
    calling,
    serve,
):
    server = serve(refusing(failed(400, "odd")))
    calling.concurrency = 1

    replies = replies_to([*bad_prompts(9), "good"], calling, server)

    assert statuses_of(replies) == ["provider_error"] * 9 + ["ok"]
    assert n_harmless_requests(server) == 1


# refusals that need no harmless request


REFUSED_CONTENT = {
    "DeepSeek": error_body(
        400, message="Content Exists Risk", code="invalid_request_error"
    ),
    "DashScope": json_body(
        {
            "code": "DataInspectionFailed",
            "message": "Input data may contain no such thing.",
        },
        400,
    ),
    "DashScope, as OpenAI": error_body(
        400, code="data_inspection_failed", message="no"
    ),
    "Zhipu": json_body(
        {
            "error": {"code": "1301", "message": "no"},
            "contentFilter": [{"level": 1, "role": "user"}],
        },
        400,
    ),
    "Zhipu, a number": error_body(400, code=1301, message="no"),
    "Moonshot": error_body(
        400, message="considered high risk", type="content_filter"
    ),
    "Volcengine": error_body(
        400, code="InputTextSensitiveContentDetected", message="no"
    ),
    "StepFun": error_body(451, message="blocked", type="censorship_blocked"),
    "Gemini": failed(
        400,
        "It contains sensitive words that violate Google's Responsible AI practices.",
    ),
    "a guardrail": failed(
        400,
        "Request blocked by guardrail policy",
        kind="guardrail_violation",
    ),
    "a proxy": failed(
        400,
        "litellm.ContentPolicyViolationError: AzureException - x",
        "400",
    ),
    "Baidu": json_body({"error_code": 336104, "error_msg": "no"}, 400),
    "Baidu with 200": json_body({"error_code": 336104, "error_msg": "no"}),
    "MiniMax": json_body(
        {
            "base_resp": {"status_code": 1026, "status_msg": "new_sensitive"},
            "choices": None,
        }
    ),
    "Anthropic": error_body(
        400, message="Output blocked by content filtering policy"
    ),
    "OpenAI": failed(
        400,
        "Your prompt was flagged as potentially violating our usage policy.",
        "invalid_prompt",
    ),
    "a code with 403": failed(403, "no", "content_policy_violation"),
    "a code with 401": failed(401, "no", "content_filter"),
    "a code with 500": failed(500, "no", "data_inspection_failed"),
    "a code with 200": error_body(code="data_inspection_failed", message="no"),
}


@pytest.mark.parametrize(
    ("refusal", "route"),
    on_routes(REFUSED_CONTENT, ["DeepSeek", "a code with 200"]),
)
def test_a_known_refusal_of_content_needs_no_harmless_request(
    refusal,
    route,
    calling,
    serve,
):
    server = serve(REFUSED_CONTENT[refusal])

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "refused"
    assert reply.attempts == 1
    assert len(server.book) == 1
    assert calling.reason_to_stop is None


def test_an_account_that_was_flagged_is_no_refusal_of_content(calling, serve):
    server = serve(failed(403, "Your account was flagged for review."))

    reply = calling(call_to(server))

    assert reply.status == "provider_error"
    assert calling.reason_to_stop is not None


@pytest.mark.parametrize("route", DECISION_ROUTES)
def test_a_refusal_stops_at_once_what_has_no_call_of_one_token(route, calling, serve):
    server = serve(failed(403, "No."))

    reply = calling(call_to(server, **DECISION_ROUTES[route]))

    assert reply.status == "provider_error"
    assert len(server.book) == 1
    assert calling.reason_to_stop is not None
