"""What calls cost: by the configuration, else by LiteLLM's table, else unknown; never a zero that nobody said."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks.llm.prices import cost_usd, count_tokens, most_answer_tokens, most_prompt_tokens, most_usd, prices_of
from tasks.llm.request import NO_PRICES, Prices, Target
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to

Serve = Callable[[Answer], FaultServer]
OWN = Prices(2.0, 0.5, 8.0, "configuration")
USAGE = {
    "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        ((1_000_000, 0, 0), 2.0), ((1_000_000, 1_000_000, 0), 0.5), ((0, 0, 1_000_000), 8.0),
        ((1_000_000, 400_000, 500_000), 1.2 + 0.2 + 4.0), ((1_000_000, None, 0), 2.0),
        ((None, None, 5), None), ((5, None, None), None), ((10, 99, 0), 10 * 0.5 / 1e6), ((0, 0, 0), 0.0),
    ],
)  # fmt: skip
def test_tokens_cost_their_prices(tokens: tuple[int | None, int | None, int | None], usd: float | None) -> None:
    assert cost_usd(OWN, *tokens) == (None if usd is None else pytest.approx(usd))


def test_cached_tokens_without_a_price_cost_as_much_as_any() -> None:
    assert cost_usd(Prices(2.0, None, 8.0), 1_000_000, 400_000, 0) == pytest.approx(2.0)


@pytest.mark.parametrize("prices", [NO_PRICES, Prices(2.0, None, None), Prices(None, 1.0, 8.0)])
def test_without_a_price_the_cost_is_unknown(prices: Prices) -> None:
    assert cost_usd(prices, 5, 0, 5) is None


def test_a_model_of_the_table_has_its_published_price() -> None:
    prices = prices_of(Target("openai/gpt-4o-mini"))
    published = pytest.approx((0.15, 0.075, 0.6))
    assert (prices.input_usd_per_mtok, prices.cached_usd_per_mtok, prices.output_usd_per_mtok) == published
    assert str(prices.price_table).startswith("litellm ")
    assert most_answer_tokens(Target("openai/gpt-4o-mini"), {}) == 16384


def test_a_name_of_another_provider_does_not_get_the_price_of_one() -> None:
    assert prices_of(Target("hosted_vllm/gpt-4o-mini")) == NO_PRICES


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_limit_that_is_sent_bounds_the_answer(name: str) -> None:
    assert most_answer_tokens(Target("openai/gpt-4o-mini"), {name: 77}) == 77


@pytest.mark.parametrize("text", ["", "a", "ü" * 10, "\U0001f600" * 7, "word " * 1000])
def test_no_tokenizer_makes_more_tokens_of_a_prompt_than_its_bound(text: str) -> None:
    count_tokens(Target("hosted_vllm/judge"), "")  # says where the encodings lie, which otherwise come from the network
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    bound = most_prompt_tokens([{"role": "user", "content": text}], {})
    assert len(encoding.encode(text)) + 7 <= bound


def test_the_bound_of_the_cost_is_not_below_any_real_cost() -> None:
    target = Target("x", prices=OWN)
    most = most_usd(target, 1000, 100)
    assert most is not None
    assert all(most >= (cost_usd(OWN, prompt, 0, answer) or 0) for prompt in (0, 999, 1000) for answer in (0, 100))
    assert most == pytest.approx(1000 * 2.0 / 1e6 + 100 * 8.0 / 1e6)


@pytest.mark.parametrize(
    "route", [{}, {"is_streamed": True}, {"name": "openai/candidate", "parameters": {"api": "responses"}}]
)
def test_a_call_costs_its_tokens_at_the_configured_price(route: dict[str, Any], calling: Calling, serve: Serve) -> None:
    usage = USAGE if "parameters" not in route else {
        "input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100,
        "input_tokens_details": {"cached_tokens": 400}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    reply = calling(call_to(serve(Answer("x", usage=usage)), prices=OWN, **route))
    assert reply.cost_usd == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 8.0) / 1e6)
    assert reply.prices == OWN


@pytest.mark.parametrize(
    "route", [{}, {"is_streamed": True}, {"parameters": {"api": "responses"}}], ids=["chat", "streamed", "responses"]
)
def test_a_call_to_a_model_of_the_table_costs_its_price(route: dict[str, Any], calling: Calling, serve: Serve) -> None:
    usage = USAGE if "parameters" not in route else {
        "input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100,
        "input_tokens_details": {"cached_tokens": 400}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    reply = calling(call_to(serve(Answer("x", usage=usage)), name="openai/gpt-4o-mini", **route))
    assert reply.cost_usd == pytest.approx((600 * 0.15 + 400 * 0.075 + 100 * 0.6) / 1e6)


def test_what_litellm_says_that_a_call_of_its_table_cost_counts_since_it_knows_tiers_and_fees(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.llm.calls.sending.cost_usd", lambda *_: 1.0)
    reply = calling(call_to(serve(Answer("x", usage=USAGE)), name="openai/gpt-4o-mini"))
    assert reply.cost_usd == pytest.approx((600 * 0.15 + 400 * 0.075 + 100 * 0.6) / 1e6)
