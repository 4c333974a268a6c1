"""Bodies that are no reply, and replies of judges: one clear object is a verdict, anything else is asked for again."""

import json
from typing import Any

import pytest

from tasks.config.models import Judge
from tasks.judge.criterion import CriterionJudge, verdict_reply_spec
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.rules.verdict import Verdict, reminder
from tasks.run.judge_configs import JudgeConfig
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed, then

pytestmark = pytest.mark.usefixtures("hurried")


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
    server = serve(HttpResponse(raw=BROKEN_STREAMS[broken], headers={"Content-Type": "text/event-stream"}))
    reply = calling(call_to(server, name=name, is_streamed=True))
    assert ("provider_error", None, 2) == (reply.status, reply.text, len(server.book))


def completion(**replaced: Any) -> HttpResponse:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return HttpResponse(raw=json.dumps({**body, **replaced}).encode())


NO_COMPLETIONS = {
    "a list": HttpResponse(raw=b"[]"), "a text": HttpResponse(raw=b'"yes"'),
    "null": HttpResponse(raw=b"null"), "{}": HttpResponse(raw=b"{}"),
    "choices that are a text": completion(choices="x"), "choices that are null": completion(choices=None),
    "a choice without a message": completion(choices=[{}]),
    "a content that is a number": completion(choices=[{"message": {"role": "assistant", "content": 12}}]),
    "a content that is an object": completion(choices=[{"message": {"role": "assistant", "content": {"a": 1}}}]),
    "an error in a good reply": HttpResponse(error={"message": "overloaded", "type": "server_error", "code": 500}),
}  # fmt: skip


@pytest.mark.parametrize("name", ["hosted_vllm/candidate", "openai/candidate"])
@pytest.mark.parametrize("kind", NO_COMPLETIONS)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_body_that_is_no_completion_is_a_provider_error(kind: str, name: str, calling: Calling, serve: Serve) -> None:
    server = serve(NO_COMPLETIONS[kind])
    reply = calling(call_to(server, name=name))
    assert ("provider_error", None, 2) == (reply.status, reply.text, len(server.book))


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
    odd: str, calling: Calling, serve: Serve
) -> None:
    server = serve(
        lambda request, _n: completion(**(ODD_FIELDS[odd] if "odd" in request["messages"][0]["content"] else {}))
    )
    calling.patience_s = 2
    calls = [call_to(server, name="openai/candidate", prompt=prompt) for prompt in ("odd", "plain")]
    odd_reply, plain = calling.at_once(*calls)
    assert not isinstance(odd_reply, BaseException)
    assert not isinstance(plain, BaseException)
    assert ("ok", "hi") == (plain.status, plain.text)
    assert "hi" == calling(calls[1]).text
    assert 2 == len(server.book)


MET = HttpResponse('{"explanation": "it says so", "criteria_met": true}')
NO_VERDICTS = {
    "a text": "Yes, it is met.",
    "a number for true": '{"criteria_met": 1}',
    "an object that is cut off": '{"explanation": "it is met", "criteria_met": tr',
    "ten megabytes of words": "criteria_met true " * 600_000,
    "endless nesting": "[" * 100_000,
}
VERDICTS = {
    "bare": ('{"criteria_met": true}', 1.0),
    "fenced": ('```json\n{"criteria_met": false}\n```', 0.0),
    "with a lone surrogate": ('{"explanation": "cut \ud83d", "criteria_met": true}', 1.0),
    "with a lone surrogate as an escape": ('{"explanation": "cut \\ud83d", "criteria_met": true}', 1.0),
    "with ten megabytes of explanation": (json.dumps({"explanation": "word " * 2_000_000, "criteria_met": True}), 1.0),
}


def decided(
    calling: Calling, server: FaultServer, *, omits_think_tag: bool = False, **given: Any
) -> tuple[Reply, Verdict | None]:
    judge = Judge(name="hosted_vllm/judge", structured_output=False, omits_think_tag=omits_think_tag)
    judge_config = JudgeConfig(judge, "a-hash", "a template", "a-hash", "binary", 1)
    named: dict[str, Any] = {"name": "hosted_vllm/judge", "timeout_s": 20.0}
    target = call_to(server, **named | given).target

    async def work(gateway: Gateway, _: Ledger) -> tuple[Reply, Verdict | None]:
        judge = CriterionJudge(gateway, target, judge_config, judge_config)
        return await judge.call_and_parse(verdict_reply_spec(judge_config), "Is it met?", "a-cell", (0,))

    return calling.inside(work)


@pytest.mark.parametrize("kind", VERDICTS)
def test_one_clear_object_is_a_verdict(kind: str, calling: Calling, serve: Serve) -> None:
    text, value = VERDICTS[kind]
    server = serve(HttpResponse(text))
    reply, verdict = decided(calling, server)
    assert verdict is not None
    assert (verdict.value, reply.status, len(server.book)) == (value, "ok", 1)
    verdict.explanation.encode()


def test_thinking_without_its_opening_tag_is_left_out_where_the_judge_is_said_to_omit_it(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse('it is {"criteria_met": true}?</think>{"criteria_met": false}'))
    _, verdict = decided(calling, server, omits_think_tag=True)
    assert verdict is not None
    assert (0.0, 1) == (verdict.value, len(server.book))


@pytest.mark.parametrize("kind", NO_VERDICTS)
def test_anything_else_is_asked_for_once_more_and_then_is_a_parse_error(
    kind: str, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse(NO_VERDICTS[kind]))
    reply, verdict = decided(calling, server)
    assert (None, "parse_error", 2, 2) == (verdict, reply.status, reply.attempts, len(server.book))
    assert reply.error
    assert len(reply.error) <= 300
    first, second = (request["messages"] for request in server.book)
    printed = {"role": "assistant", "content": NO_VERDICTS[kind]}
    assert second == [*first, printed, {"role": "user", "content": reminder("binary")}]


def test_a_good_reply_to_a_reminder_makes_a_verdict(calling: Calling, serve: Serve) -> None:
    server = serve(lambda request, _n: MET if len(request["messages"]) > 1 else HttpResponse("Well, yes."))
    reply, verdict = decided(calling, server)
    assert verdict is not None
    assert ("met", "ok", 2) == (verdict.status, reply.status, reply.attempts)
    assert 2 == len(reply.paid)


@pytest.mark.parametrize(
    ("http_response", "status", "calls"),
    [(HttpResponse("{", finish_reason="length"), "truncated", 1), (failed(503), "provider_error", 2)],
)
def test_a_judge_that_fails_is_not_reminded(
    http_response: HttpResponse, status: str, calls: int, calling: Calling, serve: Serve
) -> None:
    server = serve(http_response)
    reply, verdict = decided(calling, server)
    assert (None, status, calls) == (verdict, reply.status, len(server.book))
    assert all(len(request["messages"]) == 1 for request in server.book)


def test_a_failed_verdict_costs_both_replies(calling: Calling, serve: Serve) -> None:
    server = serve(
        then(HttpResponse("words", usage={"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000}))
    )
    reply, _ = decided(calling, server, prices=Prices(3.0, None, 9.0, "a list"))
    assert reply.cost_usd == pytest.approx(2 * 1000 * 3.0 / 1e6)
