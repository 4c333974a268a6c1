"""The cost of calls, and the room in a model's context."""

import pytest
import tiktoken

from tasks.llm import request
from tasks.llm.request import NO_PRICES, Call, Prices, Target
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import call_to

PRICES = Prices(2.0, 0.5, 8.0, "configuration")
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}


@pytest.mark.parametrize(
    ("prices", "tokens", "usd"),
    [
        # Tokens are those of the prompt, the cached ones among them, and those of the reply.
        (PRICES, (1_000_000, 400_000, 500_000), 1.2 + 0.2 + 4.0),
        (PRICES, (1_000_000, None, 0), 2.0),
        (PRICES, (0, 0, 0), 0.0),
        (PRICES, (None, None, 5), None),
        (PRICES, (5, None, None), None),
        (PRICES, (10, 99, 0), 10 * 0.5 / 1e6),
        (NO_PRICES, (5, 0, 5), None),
        (Prices(2.0, None, None), (5, 0, 5), None),
        (Prices(None, 1.0, 8.0), (5, 0, 5), None),
        (Prices(2.0, None, 8.0), (1_000_000, 400_000, 0), 2.0),
    ],
)
def test_tokens_cost_their_prices(prices, tokens, usd):
    assert request.cost_usd(prices, *tokens) == pytest.approx(usd)


def test_a_model_of_the_table_has_its_published_price():
    prices = request.prices_of(Target("openai/gpt-4o-mini"))

    assert prices.input_usd_per_mtok == pytest.approx(0.15)
    assert prices.cached_usd_per_mtok == pytest.approx(0.075)
    assert prices.output_usd_per_mtok == pytest.approx(0.6)
    assert str(prices.price_table).startswith("litellm ")


def test_a_name_of_the_table_at_another_provider_has_no_price():
    assert request.prices_of(Target("hosted_vllm/gpt-4o-mini")) == NO_PRICES


@pytest.mark.parametrize(
    ("parameters", "n_tokens"),
    [
        ({}, 16384),
        ({"max_tokens": 77}, 77),
        ({"max_completion_tokens": 77}, 77),
        ({"max_output_tokens": 77}, 77),
    ],
)
def test_the_limit_that_is_sent_bounds_the_reply_or_else_that_of_the_table(
    parameters,
    n_tokens,
):
    target = Target("openai/gpt-4o-mini")

    assert request.most_reply_tokens(target, parameters) == n_tokens


@pytest.mark.parametrize(
    "text", ["", "a", "ü" * 10, "\U0001f600" * 7, "word " * 1000]
)
def test_no_tokenizer_makes_more_tokens_of_a_prompt_than_its_bound(text):
    # Counting sets the folder of the encodings, which otherwise come from the network.
    request.count_tokens(Target("hosted_vllm/judge"), "")
    n_tokens = len(tiktoken.get_encoding("cl100k_base").encode(text))

    bound = request.most_prompt_tokens([{"role": "user", "content": text}], {})

    assert n_tokens <= len(text.encode())
    assert n_tokens + 7 <= bound


@pytest.mark.parametrize("tokens", [(1000, 0, 100), (999, 0, 100), (1000, 400, 0)])
def test_the_bound_of_the_cost_is_not_below_any_real_cost(tokens):
    bound_usd = request.most_usd(Target("x", prices=PRICES), 1000, 100)
    cost_usd = request.cost_usd(PRICES, *tokens)

    assert bound_usd == pytest.approx(0.0028)
    assert cost_usd is not None
    assert cost_usd <= bound_usd


def test_litellm_s_cost_of_a_call_counts_for_its_models(calling, serve, monkeypatch):
    monkeypatch.setattr("tasks.llm.replies.cost_usd", lambda *_: 1.0)
    server = serve(HttpResponse("x", usage=USAGE))

    reply = calling(call_to(server, name="openai/gpt-4o-mini"))

    # 600 tokens at 0.15, 400 cached ones at 0.075 and 100 at 0.6 dollars for a million.
    assert reply.cost_usd == pytest.approx(0.00018)


MIXED = (
    "Figures: 1.234 \u20ac, \u6771\u4eac\u306e\u5831\u544a, na\u00efve words. " * 20
)


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("openai/gpt-4o", "o200k_base"),
        # A tokenizer for Llama would come from the network.
        ("groq/llama-3.1-8b-instant", "cl100k_base"),
    ],
)
def test_tokens_of_an_openai_model_are_those_of_its_own_tokenizer_without_the_network(
    name,
    encoding,
):
    n_tokens = request.count_tokens(Target(name), MIXED)

    assert n_tokens == len(tiktoken.get_encoding(encoding).encode(MIXED))


@pytest.mark.parametrize(
    ("name", "context_tokens", "parameters", "room"),
    [
        ("hosted_vllm/nobody-knows-this", None, {}, None),
        ("hosted_vllm/nobody-knows-this", 8_000, {}, 6_000),
        ("hosted_vllm/nobody-knows-this", 8_000, {"max_tokens": 500}, 7_500),
        ("hosted_vllm/nobody-knows-this", 8_000, {"max_tokens": 8_000}, 4_000),
        ("openai/gpt-4o", None, {}, 111_616),
        ("openai/gpt-4o", 10_000, {}, 7_500),
        ("embedded/smollm2-135m-instruct", None, {}, 6_144),
    ],
)
def test_a_prompt_leaves_room_for_the_reply(name, context_tokens, parameters, room):
    target = Target(name, parameters=parameters)

    assert request.longest_prompt_tokens(target, context_tokens, None) == room


@pytest.mark.slow
def test_tokens_of_the_embedded_model_are_those_that_its_server_reports(calling):
    target = Target(
        "embedded/smollm2-135m-instruct",
        parameters={"max_tokens": 1},
        timeout_s=60.0,
    )
    text = MIXED[:100]

    reply = calling(Call(target, [{"role": "user", "content": text}], "a-cell"))

    assert reply.prompt_tokens is not None
    n_around = reply.prompt_tokens - request.count_tokens(target, text)
    assert 0 < n_around <= 64
