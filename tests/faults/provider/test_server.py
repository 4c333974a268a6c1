"""The endpoints as OpenAI's own client and plain HTTP see them."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from tests.faults.provider.clients import chat, post, with_client
from tests.faults.server import Answer, FaultServer


def completed(answer: Answer, **more: Any) -> ChatCompletion:
    with FaultServer(lambda _request, _number: answer) as server:
        return with_client(server.api_base, lambda client: client.chat.completions.create(**chat(**more)))


def streamed(answer: Answer, **more: Any) -> list[ChatCompletionChunk]:
    async def use(client: AsyncOpenAI) -> list[ChatCompletionChunk]:
        return [chunk async for chunk in await client.chat.completions.create(stream=True, **chat(**more))]

    with FaultServer(lambda _request, _number: answer) as server:
        return with_client(server.api_base, use)


def responded(answer: Answer, **asked: Any) -> Response:
    asked = {"model": "candidate", "input": "What is a bond?", **asked}
    with FaultServer(lambda _request, _number: answer) as server:
        response: Response = with_client(server.api_base, lambda client: client.responses.create(**asked))
    return response


def test_a_completion_has_its_text_its_model_and_its_tokens() -> None:
    completion = completed(Answer("A debt.", reasoning_tokens=5, cached_tokens=1, fingerprint="fp_1"))
    assert (completion.choices[0].message.content, completion.choices[0].finish_reason) == ("A debt.", "stop")
    assert (completion.model, completion.system_fingerprint) == ("candidate-2026-11-01", "fp_1")
    usage = completion.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (4, 7, 11)
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert (usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens) == (1, 5)


def test_a_stream_brings_the_text_in_pieces_then_the_reason_then_the_usage() -> None:
    text = "A debt that pays interest. \U0001f600"
    chunks = streamed(Answer(text, finish_reason="length"), stream_options={"include_usage": True})
    *deltas, last, usage = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in deltas) == text
    assert sum(bool(chunk.choices[0].delta.content) for chunk in deltas) > 2
    assert {chunk.choices[0].finish_reason for chunk in deltas} == {None}
    assert last.choices[0].finish_reason == "length"
    assert (usage.choices, usage.usage and usage.usage.completion_tokens) == ([], 6)
    assert {chunk.usage for chunk in [*deltas, last]} == {None}


def test_a_stream_is_made_of_events_and_ends_with_done() -> None:
    with FaultServer() as server:
        answer = post(server, chat(stream=True))
    assert answer.headers["content-type"] == "text/event-stream"
    events = answer.text.removesuffix("\n\n").split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    assert events[-1] == "data: [DONE]"
    assert {json.loads(event[6:])["object"] for event in events[:-1]} == {"chat.completion.chunk"}


def test_a_response_has_its_text_and_its_tokens() -> None:
    response = responded(Answer("A debt.", reasoning_tokens=5), metadata={"cell": "7"}, instructions="Be brief.")
    assert (response.output_text, response.status, response.incomplete_details) == ("A debt.", "completed", None)
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert (response.model, response.metadata) == ("candidate-2026-11-01", {"cell": "7"})
    usage = response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (6, 7, 13)
    assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (3, 5)


def test_an_error_has_its_status_its_message_and_its_headers() -> None:
    error = {"message": "Slow down.", "type": "rate_limit_error", "param": None, "code": None}
    with pytest.raises(openai.RateLimitError, match=r"Slow down\.") as caught:
        completed(Answer(status=429, error=error, headers={"Retry-After": "7", "content-type": "text/plain"}))
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.headers.get_list("content-type") == ["text/plain"]
    with pytest.raises(openai.InternalServerError):
        completed(Answer(status=500))


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("raw", [b"", b"\xff\xfe\x00", b'{"id": "chat', b"<html></html>"])
def test_any_bytes_can_be_sent_with_any_status(raw: bytes, status: int) -> None:
    with FaultServer(lambda _request, _number: Answer(status=status, raw=raw)) as server:
        answer = post(server, chat(stream=True))
    assert (answer.status_code, answer.content) == (status, raw)


@pytest.mark.parametrize("request_", [[], {}, {"model": "m"}, {"model": "m", "messages": "no"}, "x"])
def test_what_is_no_request_is_refused_and_not_in_the_book(request_: object) -> None:
    with FaultServer() as server:
        assert [post(server, request_, path).status_code for path in ("/chat/completions", "/responses")] == [400, 400]
        assert post(server, {"model": "m", "input": "x", "stream": True}, "/responses").status_code == 400
    assert (server.book, server.entries) == ([], [])
