"""What has room in a model's context: by its own tokenizer where it is there, with room for the reply."""

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.prices import context_window_of, count_tokens
from tasks.llm.request import Call, Target
from tests.tasks.llm.conftest import Calling

MIXED = "Figures: 1.234 \u20ac, \u6771\u4eac\u306e\u5831\u544a, na\u00efve words. " * 20


def test_tokens_of_an_openai_model_are_those_of_its_own_tokenizer() -> None:
    counted = count_tokens(Target("openai/gpt-4o"), MIXED)
    assert counted == len(tiktoken.get_encoding("o200k_base").encode(MIXED))
    assert counted != len(tiktoken.get_encoding("cl100k_base").encode(MIXED))


def test_counting_for_a_llama_asks_no_network() -> None:
    counted = count_tokens(Target("groq/llama-3.1-8b-instant"), MIXED)
    assert counted == len(tiktoken.get_encoding("cl100k_base").encode(MIXED))


def test_the_reply_has_its_room() -> None:
    def room(name: str, context: int | None = None, **parameters: int) -> int | None:
        return context_window_of(Target(name, parameters=parameters), context, None).prompt_tokens

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
    assert reply.prompt_tokens is not None
    around = reply.prompt_tokens - count_tokens(target, MIXED[:100])
    assert 0 < around <= 64


@given(st.text(max_size=300), st.integers(1, 200))
def test_what_surely_fits_does_fit(text: str, context: int) -> None:
    window = context_window_of(Target("hosted_vllm/nobody-knows-this"), context + 64, None)
    assert not window.surely_holds(text) or window.beside(text) >= 0
