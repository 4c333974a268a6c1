"""Reports of usage that count differently: one rule for every route, and caps that hold whatever a
report says.
"""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.llm.limiter import Budget, BudgetSpent
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.llm.usage import Tokens, openai_form, tokens_in
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import (
    ROUTES,
    Calling,
    Serve,
    call_to,
    calls_to,
    in_turn,
)
from tests.tasks.llm.transport.test_ends import EVENTS, JSON, event, reply_to

JsonObject = dict[str, Any]

PRICES = Prices(1.0, 0.1, 10.0, "a list")
XAI_USAGE = {
    "prompt_tokens": 10_120,
    "completion_tokens": 1_499,
    "total_tokens": 14_428,
    "prompt_tokens_details": {"cached_tokens": 128},
    "completion_tokens_details": {"reasoning_tokens": 2_809},
}
XAI_COST_USD = pytest.approx((9_992 * 1.0 + 128 * 0.1 + 4_308 * 10.0) / 1e6)
"""About $0.05308; without the reasoning it would be $0.02499."""
WITH_KEY: JsonObject = {"parameters": {"api_key": "none"}}
USAGE_ROUTES = ROUTES | {"xai": {"name": "xai/candidate", **WITH_KEY}}
CHAT_ROUTES = [route for route in USAGE_ROUTES if route != "responses"]


def renamed(usage: JsonObject, route: str) -> JsonObject:
    """The report with the names of the route's API."""
    if route != "responses":
        return usage
    text = json.dumps(usage)
    text = text.replace("prompt_tokens", "input_tokens")
    text = text.replace("completion_tokens", "output_tokens")
    return json.loads(text)


def reply_with(
    usage: JsonObject,
    route: str,
    calling: Calling,
    serve: Serve,
    **target: Any,
) -> Reply:
    """Return the reply to a call whose provider reports this usage."""
    server = serve(HttpResponse("A debt.", usage=renamed(usage, route)))
    settings = {
        "prices": PRICES,
        **USAGE_ROUTES[route],
        **target,
    }
    return calling(call_to(server, **settings))


def counts(reply: Reply) -> Tokens:
    return Tokens(
        reply.prompt_tokens,
        reply.cached_tokens,
        reply.completion_tokens,
        reply.reasoning_tokens,
    )


UNKNOWN = Tokens()


@pytest.mark.parametrize("route", USAGE_ROUTES)
def test_reasoning_beside_the_completion_is_counted_and_paid(route, calling, serve):
    reply = reply_with(XAI_USAGE, route, calling, serve)

    assert counts(reply) == Tokens(
        prompt=10_120,
        cached=128,
        completion=4_308,
        reasoning=2_809,
    )
    assert reply.cost_usd == XAI_COST_USD
    assert reply.prices == PRICES


CACHED_USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 100,
    "total_tokens": 1_100,
    "cached_tokens": 400,
}


@pytest.mark.parametrize(
    ("usage", "microdollars"),
    [
        (XAI_USAGE, 9_992 * 0.15 + 128 * 0.075 + 4_308 * 0.6),
        (CACHED_USAGE, 600 * 0.15 + 400 * 0.075 + 100 * 0.6),
    ],
    ids=["reasoning beside the completion", "cached tokens at the top"],
)
@pytest.mark.parametrize("route", ["openai", "openai-streamed", "responses"])
def test_litellm_prices_the_tokens_that_a_report_means(
    route,
    usage,
    microdollars,
    calling,
    serve,
):
    reply = reply_with(
        usage,
        route,
        calling,
        serve,
        name="openai/gpt-4o-mini",
        prices=None,
    )

    assert reply.cost_usd == pytest.approx(microdollars / 1e6)


def growing_event(
    n_completion: int,
    n_reasoning: int,
    finish_reason: str | None = None,
) -> str:
    """Return an event of a stream, with a report of usage so far."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": n_completion,
        "total_tokens": 100 + n_completion + n_reasoning,
        "completion_tokens_details": {"reasoning_tokens": n_reasoning},
    }
    choice = {
        "index": 0,
        "delta": {"content": "a"},
        "finish_reason": finish_reason,
    }
    return event(choices=[choice], usage=usage)


@pytest.mark.parametrize("route", ["streamed", "openai-streamed"])
def test_the_last_of_a_stream_s_growing_reports_counts(route, calling, serve):
    stream = (
        growing_event(0, 10) + growing_event(1, 30) + growing_event(2, 30, "stop")
    )
    server = serve(HttpResponse(raw=stream.encode(), headers=EVENTS))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.text == "aaa"
    assert counts(reply) == Tokens(prompt=100, completion=32, reasoning=30)


async def test_results_of_a_batch_follow_the_same_rule(calling, serve):
    server = serve(HttpResponse("A debt.", usage=XAI_USAGE))

    batching = await calling.batched(
        [call_to(server, name="openai/judge", prices=PRICES)]
    )

    [reply] = batching.replies
    assert reply.completion_tokens == 4_308
    assert reply.cost_usd == XAI_COST_USD


def test_a_cap_counts_the_reasoning_and_lets_no_further_call_through(calling, serve):
    server = serve(HttpResponse("A debt.", usage=XAI_USAGE))
    calling.max_usd = 0.03
    calling.concurrency = 1
    target = {"prices": PRICES, "parameters": {"max_tokens": 1_500}}

    _, *later_replies = calling.call_at_once(*calls_to(server, 4, **target))

    assert len(server.book) == 1
    assert all(isinstance(reply, BudgetSpent) for reply in later_replies)
    assert calling.limiter.budget.used_usd == XAI_COST_USD


PLAIN = {"prompt_tokens": 1_000, "completion_tokens": 100}
ADDING_UP = PLAIN | {"total_tokens": 1_100}
NOT_ADDING_UP: dict[str, tuple[JsonObject, int]] = {
    "a total that is too large": ({"total_tokens": 5_000}, 5_000),
    "a total that is too small": ({"total_tokens": 1_050}, 1_100),
    "a negative total": ({"total_tokens": -1}, 1_100),
    "an absurd total": ({"total_tokens": 10**15}, 1_100),
    "a total between two readings": (
        {
            "total_tokens": 1_200,
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        1_400,
    ),
    "more reasoning than completion inside": (
        {
            "total_tokens": 1_100,
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        1_400,
    ),
    "more cached tokens than prompt inside": (
        {"total_tokens": 1_100, "prompt_tokens_details": {"cached_tokens": 3_000}},
        4_100,
    ),
    "reasoning stated twice, differently": (
        {
            "total_tokens": 1_400,
            "reasoning_tokens": 300,
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        1_400,
    ),
}
"""What a report states beside `PLAIN`, and the tokens that a cap assumes."""


@pytest.mark.parametrize(("case", "route"), in_turn(NOT_ADDING_UP, USAGE_ROUTES))
def test_a_report_that_does_not_add_up_is_unknown_and_a_cap_assumes_its_largest_reading(
    case,
    route,
    calling,
    serve,
):
    usage, assumed_tokens = NOT_ADDING_UP[case]

    reply = reply_with(PLAIN | usage, route, calling, serve)

    assert reply.text == "A debt."
    assert counts(reply) == UNKNOWN
    assert reply.cost_usd is None
    assert calling.limiter.budget.used_tokens == assumed_tokens
    assert calling.limiter.budget.used_usd >= (1_000 * 1.0 + 100 * 10.0) / 1e6


async def test_a_batch_whose_reports_do_not_add_up_counts_by_the_largest_reading(
    calling,
    serve,
):
    server = serve(HttpResponse("A debt.", usage=PLAIN | {"total_tokens": 5_000}))
    budget = Budget(None, 100_000)
    call = call_to(
        server,
        name="openai/judge",
        prices=PRICES,
        parameters={"max_tokens": 10},
    )

    batching = await calling.batched([call], budget)

    [reply] = batching.replies
    assert counts(reply) == UNKNOWN
    assert budget.used_tokens == 5_000


@pytest.mark.parametrize(
    ("total", "route"),
    in_turn([{}, {"total_tokens": None}, {"total_tokens": 0}], CHAT_ROUTES),
)
def test_without_a_total_the_counts_are_those_that_are_stated(
    total,
    route,
    calling,
    serve,
):
    usage = {
        name: value for name, value in XAI_USAGE.items() if name != "total_tokens"
    }

    reply = reply_with(usage | total, route, calling, serve)

    assert counts(reply) == Tokens(
        prompt=10_120,
        cached=128,
        completion=1_499,
        reasoning=2_809,
    )


CACHES: dict[str, tuple[JsonObject, int, int | None]] = {
    "in the details": (
        {"prompt_tokens_details": {"cached_tokens": 400}},
        1_000,
        400,
    ),
    "as hits": (
        {
            "prompt_cache_hit_tokens": 400,
            "prompt_cache_miss_tokens": 600,
        },
        1_000,
        400,
    ),
    "as reads inside": (
        {"cache_read_input_tokens": 400},
        1_000,
        400,
    ),
    "as reads beside": (
        {"total_tokens": 1_500, "cache_read_input_tokens": 400},
        1_400,
        400,
    ),
    "as reads and writes beside": (
        {
            "total_tokens": 1_550,
            "cache_read_input_tokens": 400,
            "cache_creation_input_tokens": 50,
        },
        1_450,
        400,
    ),
    "in the details, beside": (
        {"total_tokens": 1_500, "prompt_tokens_details": {"cached_tokens": 400}},
        1_400,
        400,
    ),
    "at the top beside null details": (
        {
            "cached_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": None},
        },
        1_000,
        400,
    ),
    "null": (
        {
            "cached_tokens": None,
            "prompt_tokens_details": None,
        },
        1_000,
        None,
    ),
    "null in the details": (
        {"prompt_tokens_details": {"cached_tokens": None}},
        1_000,
        None,
    ),
    "stated twice, differently": (
        {
            "cached_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        1_000,
        None,
    ),
    "negative": (
        {"prompt_tokens_details": {"cached_tokens": -400}},
        1_000,
        None,
    ),
    "absurd": (
        {"prompt_tokens_details": {"cached_tokens": 10**15}},
        1_000,
        None,
    ),
}


@pytest.mark.parametrize(("case", "route"), in_turn(CACHES, USAGE_ROUTES))
def test_cached_tokens_are_found_and_the_prompt_includes_them(
    case,
    route,
    calling,
    serve,
):
    usage, prompt_tokens, cached_tokens = CACHES[case]

    reply = reply_with(ADDING_UP | usage, route, calling, serve)

    n_discounted = cached_tokens or 0
    microdollars = (
        (prompt_tokens - n_discounted) * 1.0 + n_discounted * 0.1 + 100 * 10.0
    )
    assert counts(reply) == Tokens(prompt_tokens, cached_tokens, 100)
    assert reply.cost_usd == pytest.approx(microdollars / 1e6)


@pytest.mark.parametrize("route", CHAT_ROUTES)
def test_a_completion_of_null_tokens_is_unknown_and_not_free(route, calling, serve):
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": None,
        "total_tokens": 1_100,
    }

    reply = reply_with(usage, route, calling, serve)

    assert reply.prompt_tokens == 1_000
    assert reply.completion_tokens is None
    assert reply.cost_usd is None


def gemini(usage: dict[str, int]) -> JsonObject:
    """A response to a prompt of 100 tokens."""
    content = {"role": "model", "parts": [{"text": "A debt."}]}
    candidate = {
        "content": content,
        "finishReason": "STOP",
        "index": 0,
    }
    usage_metadata = {"promptTokenCount": 100, **usage}
    return {"candidates": [candidate], "usageMetadata": usage_metadata}


def anthropic(usage: dict[str, int | None]) -> JsonObject:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "A debt."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 30,
                "totalTokenCount": 150,
            },
            Tokens(prompt=100, completion=50, reasoning=30),
        ),
        (
            {
                "candidatesTokenCount": 50,
                "thoughtsTokenCount": 30,
                "totalTokenCount": 150,
            },
            Tokens(prompt=100, completion=50, reasoning=30),
        ),
        (
            {
                "thoughtsTokenCount": 30,
                "totalTokenCount": 130,
                "cachedContentTokenCount": 40,
            },
            Tokens(prompt=100, cached=40, completion=30, reasoning=30),
        ),
        (
            {
                "candidatesTokenCount": 20,
                "toolUsePromptTokenCount": 7,
                "totalTokenCount": 127,
            },
            Tokens(prompt=107, completion=20),
        ),
        (
            {
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 30,
                "totalTokenCount": 999,
            },
            UNKNOWN,
        ),
    ],
    ids=["beside", "inside", "only thoughts", "with a tool", "not adding up"],
)
def test_gemini_s_thoughts_are_a_part_of_the_completion(usage, expected):
    body = json.dumps(gemini(usage))

    reply = reply_to(body, JSON, name="gemini/candidate", **WITH_KEY)

    assert reply.status == "ok"
    assert counts(reply) == expected


@pytest.mark.parametrize(
    ("usage", "prompt_tokens", "cached_tokens"),
    [
        (
            {"cache_read_input_tokens": 400, "cache_creation_input_tokens": 50},
            550,
            400,
        ),
        ({"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, 100, 0),
        (
            {"cache_read_input_tokens": None, "cache_creation_input_tokens": None},
            100,
            None,
        ),
        ({}, 100, None),
    ],
    ids=["read and written", "zero", "null", "not stated"],
)
def test_anthropic_s_cached_tokens_are_a_part_of_the_prompt(
    usage,
    prompt_tokens,
    cached_tokens,
):
    body = json.dumps(anthropic({"input_tokens": 100, "output_tokens": 20} | usage))

    reply = reply_to(body, JSON, name="anthropic/candidate", **WITH_KEY)

    assert reply.status == "ok"
    assert reply.prompt_tokens == prompt_tokens
    assert reply.cached_tokens == cached_tokens
    assert reply.completion_tokens == 20


AMOUNTS = st.integers(0, 10**6)


@st.composite
def calls(draw: st.DrawFn) -> JsonObject:
    """What a call used, and a convention in which it is reported."""
    visible = draw(AMOUNTS)
    reasoning = draw(AMOUNTS)
    cached = draw(AMOUNTS)
    written = draw(AMOUNTS)
    uncached = draw(st.integers(1, 10**6))
    return {
        "prompt": uncached + cached + written,
        "cached": cached,
        "written": written,
        "completion": visible + reasoning,
        "reasoning": reasoning,
        "is_cache_beside": draw(st.booleans()),
        "is_reasoning_beside": draw(st.booleans()),
        "names": draw(
            st.sampled_from([("prompt", "completion"), ("input", "output")])
        ),
        "cached_at_top": draw(st.booleans()),
    }


def report_of(call: JsonObject) -> JsonObject:
    """The report of a call in its convention."""
    prompt_name, completion_name = call["names"]
    prompt = call["prompt"]
    completion = call["completion"]
    report = {
        "total_tokens": prompt + completion,
        f"{completion_name}_tokens_details": {"reasoning_tokens": call["reasoning"]},
    }
    cache = {"cached_tokens": call["cached"], "cache_write_tokens": call["written"]}
    if call["cached_at_top"]:
        report |= cache
    else:
        report[f"{prompt_name}_tokens_details"] = cache
    if call["is_cache_beside"]:
        prompt -= call["cached"] + call["written"]
    if call["is_reasoning_beside"]:
        completion -= call["reasoning"]
    report[f"{prompt_name}_tokens"] = prompt
    report[f"{completion_name}_tokens"] = completion
    return report


@given(call=calls())
def test_a_report_in_any_convention_gives_the_parts_that_it_was_made_from(call):
    report = report_of(call)
    # Otherwise two conventions have the same total.
    assume(call["cached"] + call["written"] != call["reasoning"])

    tokens = tokens_in(report)

    assert tokens.prompt == call["prompt"]
    assert tokens.cached == call["cached"]
    assert tokens.completion == call["completion"]
    assert tokens.reasoning == call["reasoning"]
    assert tokens_in(openai_form(report)) == tokens


@given(call=calls(), total=st.integers(-10, 10**7))
def test_a_report_adds_up_in_a_convention_or_gives_nothing(call, total):
    report = report_of(call) | {"total_tokens": total}

    tokens = tokens_in(report)

    if tokens.adds_up:
        assert tokens.prompt is not None
        assert tokens.completion is not None
        assert tokens.prompt + tokens.completion == total
        assert tokens.largest is None
    elif total != 0:
        assert tokens == Tokens(largest=tokens.largest)
        assert tokens.largest is not None
        assert sum(tokens.largest) >= total
        assert openai_form(report) == {}
