"""Bodies that are no reply: streams that break off, JSON that is no completion, fields of the wrong type."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Answer], FaultServer]


def chunk(delta: dict[str, str], finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps({**head, **more}).encode() + b"\n\n"


FIRST = chunk({"role": "assistant", "content": "Half of"})
DONE = b"data: [DONE]\n\n"
BROKEN_STREAMS = {
    "ends without its end": FIRST,
    "is done without a reason": FIRST + DONE,
    "breaks off with an error": FIRST + b'data: {"error": {"message": "overloaded", "code": 500}}\n\n' + DONE,
    "breaks off in an event": FIRST + chunk({"content": " it"}, "stop")[:40],
    "is nothing but done": DONE,
}
UNNOTICED = pytest.mark.xfail(strict=True, reason="LiteLLM makes the reason `stop` of such a stream's [DONE]")


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        *((broken, "openai/candidate") for broken in BROKEN_STREAMS),
        *(
            pytest.param(broken, "hosted_vllm/candidate", marks=[UNNOTICED] if broken.startswith("is ") else [])
            for broken in BROKEN_STREAMS
        ),
    ],
)
def test_a_stream_that_breaks_off_is_never_a_reply(broken: str, name: str, calling: Calling, serve: Serve) -> None:
    server = serve(Answer(raw=BROKEN_STREAMS[broken], headers={"Content-Type": "text/event-stream"}))
    reply = calling(call_to(server, name=name, is_streamed=True))
    assert (reply.status, reply.text, len(server.book)) == ("provider_error", None, 2)


def completion(**replaced: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return Answer(raw=json.dumps({**body, **replaced}).encode())


NO_COMPLETIONS = {
    "a list": Answer(raw=b"[]"), "a text": Answer(raw=b'"yes"'), "null": Answer(raw=b"null"), "{}": Answer(raw=b"{}"),
    "choices that are a text": completion(choices="x"), "choices that are null": completion(choices=None),
    "a choice without a message": completion(choices=[{}]),
    "a content that is a number": completion(choices=[{"message": {"role": "assistant", "content": 12}}]),
    "a content that is an object": completion(choices=[{"message": {"role": "assistant", "content": {"a": 1}}}]),
    "an error in a good answer": Answer(error={"message": "overloaded", "type": "server_error", "code": 500}),
}  # fmt: skip


@pytest.mark.parametrize("name", ["hosted_vllm/candidate", "openai/candidate"])
@pytest.mark.parametrize("kind", NO_COMPLETIONS)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_body_that_is_no_completion_is_a_provider_error(kind: str, name: str, calling: Calling, serve: Serve) -> None:
    server = serve(NO_COMPLETIONS[kind])
    reply = calling(call_to(server, name=name))
    assert (reply.status, reply.text, len(server.book)) == ("provider_error", None, 2)


ODD_FIELDS: dict[str, dict[str, Any]] = {
    "a lone surrogate in the model": {"model": "m\ud83d"},
    "a lone surrogate in the fingerprint": {"system_fingerprint": "f\ud83d"},
    "a fingerprint that is an object": {"system_fingerprint": {"a": 1}},
    "a model that is an object": {"model": {"a": 1}},
    "tokens beyond all counting": {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1, "total_tokens": 1}},
}


@pytest.mark.parametrize("odd", ODD_FIELDS)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_odd_fields_of_one_reply_do_not_keep_the_others_from_being_stored(
    odd: str, calling: Calling, serve: Callable[[Any], FaultServer]
) -> None:
    server = serve(
        lambda request, _n: completion(**(ODD_FIELDS[odd] if "odd" in request["messages"][0]["content"] else {}))
    )
    calling.patience_s = 2
    calls = [call_to(server, name="openai/candidate", question=question) for question in ("odd", "plain")]
    odd_reply, plain = calling.together(*calls)
    assert not isinstance(odd_reply, BaseException)
    assert not isinstance(plain, BaseException)
    assert (plain.status, plain.text) == ("ok", "hi")
    assert calling(calls[1]).text == "hi"
    assert len(server.book) == 2
