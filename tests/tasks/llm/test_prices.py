"""The cost of calls, and the room in a model's context."""

import pytest
import tiktoken

from tasks.llm import request
from tasks.llm.request import NO_PRICES, Call, Prices, Target
from tests.faults.server import HttpResponse
from tests.kit import Patch
from tests.tasks.llm.conftest import ROUTES, Calling, Serve, call_to

OWN = Prices(2.0, 0.5, 8.0, "configuration")
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}


@pytest.mark.parametrize(
    ("prices", "tokens", "usd"),
    [
        (OWN, (1_000_000, 0, 0), 2.0),
        (OWN, (1_000_000, 1_000_000, 0), 0.5),
        (OWN, (0, 0, 1_000_000), 8.0),
        (OWN, (1_000_000, 400_000, 500_000), 1.2 + 0.2 + 4.0),
        (OWN, (1_000_000, None, 0), 2.0),
        (OWN, (0, 0, 0), 0.0),
        (OWN, (None, None, 5), None),
        (OWN, (5, None, None), None),
        (OWN, (10, 99, 0), 10 * 0.5 / 1e6),
        (NO_PRICES, (5, 0, 5), None),
        (Prices(2.0, None, None), (5, 0, 5), None),
        (Prices(None, 1.0, 8.0), (5, 0, 5), None),
        (Prices(2.0, None, 8.0), (1_000_000, 400_000, 0), 2.0),
    ],
)
def test_tokens_cost_their_prices(
    prices: Prices, tokens: tuple[int | None, ...], usd: float | None
) -> None:
    assert (None if usd is None else pytest.approx(usd)) == request.cost_usd(prices, *tokens)


def test_a_model_of_the_table_has_its_published_price_and_its_name_at_another_provider_has_none() -> (
    None
):
    prices = request.prices_of(Target("openai/gpt-4o-mini"))
    actual = (prices.input_usd_per_mtok, prices.cached_usd_per_mtok, prices.output_usd_per_mtok)
    assert actual == pytest.approx((0.15, 0.075, 0.6))
    assert str(prices.price_table).startswith("litellm ")
    assert request.prices_of(Target("hosted_vllm/gpt-4o-mini")) == NO_PRICES


def test_the_limit_that_is_sent_bounds_the_reply_or_else_that_of_the_table() -> None:
    assert request.most_reply_tokens(Target("openai/gpt-4o-mini"), {}) == 16384
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        assert request.most_reply_tokens(Target("openai/gpt-4o-mini"), {name: 77}) == 77


@pytest.mark.parametrize("text", ["", "a", "ü" * 10, "\U0001f600" * 7, "word " * 1000])
def test_no_tokenizer_makes_more_tokens_of_a_prompt_than_its_bound(text: str) -> None:
    # Counting sets the folder of the encodings, which otherwise come from the network.
    request.count_tokens(Target("hosted_vllm/judge"), "")
    encoding = tiktoken.get_encoding("cl100k_base")
    assert len(encoding.encode(text)) <= len(text.encode())
    assert len(encoding.encode(text)) + 7 <= request.most_prompt_tokens(
        [{"role": "user", "content": text}], {}
    )


def test_the_bound_of_the_cost_is_not_below_any_real_cost() -> None:
    most = request.most_usd(Target("x", prices=OWN), 1000, 100)
    assert most == pytest.approx(1000 * 2.0 / 1e6 + 100 * 8.0 / 1e6)
    for tokens in ((1000, 0, 100), (999, 0, 100), (1000, 400, 0)):
        assert (request.cost_usd(OWN, *tokens) or 1) <= (most or 0)


@pytest.mark.parametrize("route", ["vllm", "streamed", "responses"])
@pytest.mark.parametrize("of_table", [False, True], ids=["configured", "of the table"])
def test_a_call_costs_its_tokens_at_its_price(
    of_table: bool, route: str, calling: Calling, serve: Serve
) -> None:
    usage = (
        USAGE
        if route != "responses"
        else {
            "input_tokens": 1000,
            "output_tokens": 100,
            "total_tokens": 1100,
            "input_tokens_details": {"cached_tokens": 400},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
    )
    own = {"name": "openai/gpt-4o-mini"} if of_table else {"prices": OWN}
    reply = calling(call_to(serve(HttpResponse("x", usage=usage)), **ROUTES[route] | own))
    prompt, cached, completion = (0.15, 0.075, 0.6) if of_table else (2.0, 0.5, 8.0)
    assert pytest.approx((600 * prompt + 400 * cached + 100 * completion) / 1e6) == reply.cost_usd
    assert of_table or reply.prices == OWN


def test_litellm_s_cost_of_a_call_counts_for_its_models(
    calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tasks.llm.replies.cost_usd", lambda *_: 1.0)
    reply = calling(call_to(serve(HttpResponse("x", usage=USAGE)), name="openai/gpt-4o-mini"))
    assert reply.cost_usd == pytest.approx((600 * 0.15 + 400 * 0.075 + 100 * 0.6) / 1e6)


MIXED = "Figures: 1.234 \u20ac, \u6771\u4eac\u306e\u5831\u544a, na\u00efve words. " * 20


def test_tokens_of_an_openai_model_are_those_of_its_own_tokenizer_and_no_network_is_asked() -> None:
    newer, older = (
        len(tiktoken.get_encoding(name).encode(MIXED)) for name in ("o200k_base", "cl100k_base")
    )
    assert older != newer == request.count_tokens(Target("openai/gpt-4o"), MIXED)
    # A tokenizer for Llama would come from the network.
    assert older == request.count_tokens(Target("groq/llama-3.1-8b-instant"), MIXED)


def test_the_reply_has_its_room() -> None:
    def room(name: str, context: int | None = None, **parameters: int) -> int | None:
        return request.most_prompt_tokens_of(Target(name, parameters=parameters), context, None)

    assert room("hosted_vllm/nobody-knows-this") is None
    assert room("hosted_vllm/nobody-knows-this", 8_000) == 6_000
    assert room("hosted_vllm/nobody-knows-this", 8_000, max_tokens=500) == 7_500
    assert room("hosted_vllm/nobody-knows-this", 8_000, max_tokens=8_000) == 4_000
    assert room("openai/gpt-4o") == 128_000 - 16_384
    assert room("openai/gpt-4o", 10_000) == 7_500
    assert room("embedded/smollm2-135m-instruct") == 6_144


@pytest.mark.slow
def test_tokens_of_the_embedded_model_are_those_that_its_server_reports(calling: Calling) -> None:
    target = Target("embedded/smollm2-135m-instruct", parameters={"max_tokens": 1}, timeout_s=60.0)
    reply = calling(Call(target, [{"role": "user", "content": MIXED[:100]}], "a-cell"))
    assert 0 < (reply.prompt_tokens or 0) - request.count_tokens(target, MIXED[:100]) <= 64
