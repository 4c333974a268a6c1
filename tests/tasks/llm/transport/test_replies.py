"""Bodies without a reply, judges' replies without a verdict, and invalid numbers in replies."""

import json
import re
from typing import Any

import pytest

from tasks.config.models import Judge
from tasks.judge.criterion import CriterionJudge
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.rules.verdict import reminder
from tasks.run.calls import call_and_parse
from tasks.run.judge_configs import JudgeConfig
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import (
    ROUTES,
    Calling,
    call_to,
    failed,
    in_turn,
    json_body,
)
from tests.tasks.llm.transport.test_ends import (
    CHAT,
    EVENTS,
    TEXT,
    THINKING,
    USAGE,
    completion_body,
    event,
)

pytestmark = pytest.mark.usefixtures("hurried")


def chunk(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {
        "index": 0,
        "delta": delta,
        "finish_reason": finish_reason,
    }
    return event(choices=[choice]).encode()


FIRST = chunk({"role": "assistant", "content": "Half of"})
DONE = b"data: [DONE]\n\n"
BROKEN_STREAMS = {
    "ends without its end": FIRST,
    "breaks off with an error": (
        FIRST + b'data: {"error": {"message": "overloaded", "code": 500}}\n\n' + DONE
    ),
    "breaks off in an event": FIRST + chunk({"content": " it"}, "stop")[:40],
    "is nothing but done": DONE,
}


@pytest.mark.parametrize(
    ("broken", "route"),
    in_turn(BROKEN_STREAMS, ["openai-streamed", "streamed"]),
)
def test_a_stream_that_breaks_off_is_never_a_reply(broken, route, calling, serve):
    server = serve(HttpResponse(raw=BROKEN_STREAMS[broken], headers=EVENTS))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status in {"provider_error", "empty"}
    assert reply.text is None
    assert len(server.book) == 2


def completion(**replaced: Any) -> HttpResponse:
    """A completion with a report of usage, or with whatever replaces its fields."""
    body = json.loads(completion_body({"content": "hi"}))
    return json_body({**body, **replaced})


NO_COMPLETIONS = {
    "a list": HttpResponse(raw=b"[]"),
    "a text": HttpResponse(raw=b'"text"'),
    "null": HttpResponse(raw=b"null"),
    "an empty object": HttpResponse(raw=b"{}"),
    "a number": HttpResponse(raw=b"5"),
    "deep nesting": HttpResponse(raw=b"[" * 100_000),
    "no text at all": HttpResponse(raw=b"\xff\xfe"),
    "NaN": HttpResponse(raw=b'{"id": NaN, "choices": [{"message": 5}]}'),
    "choices that are a text": completion(choices="x", usage=None),
    "choices that are null": completion(choices=None, usage=None),
    "a choice without a message": completion(choices=[{}], usage=None),
    "an error in a good reply": HttpResponse(
        error={
            "message": "overloaded",
            "type": "server_error",
            "code": 500,
        }
    ),
    "a traceback": failed(
        500,
        'broken\nTraceback (most recent call last):\n  File "/srv/app.py", line 3\nValueError',
    ),
}
NO_CODE = re.compile(r"\n|Traceback|File \"|site-packages|app\.py")


@pytest.mark.parametrize(("kind", "route"), in_turn(NO_COMPLETIONS, ROUTES))
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_no_completion_is_a_provider_error_of_one_line(kind, route, calling, serve):
    server = serve(NO_COMPLETIONS[kind])

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "provider_error"
    assert reply.text is None
    assert len(server.book) == 2
    assert not NO_CODE.search(reply.error or "\n")


@pytest.mark.parametrize(("content", "route"), in_turn([12, {"a": 1}], CHAT))
def test_a_paid_completion_without_a_text_is_a_permanent_failure(
    content,
    route,
    calling,
    serve,
):
    message = {"role": "assistant", "content": content}
    server = serve(completion(choices=[{"message": message}]))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "unclear"
    assert reply.prompt_tokens == USAGE["prompt_tokens"]
    assert len(server.book) == 1


ODD_FIELDS: dict[str, dict[str, Any]] = {
    "a lone surrogate in the model": {"model": "m\ud83d"},
    "a lone surrogate in the fingerprint": {"system_fingerprint": "f\ud83d"},
    "a fingerprint that is an object": {"system_fingerprint": {"a": 1}},
    "a model that is an object": {"model": {"a": 1}},
    "tokens beyond all counting": {
        "usage": {
            "prompt_tokens": 10**30,
            "completion_tokens": 1,
            "total_tokens": 1,
        }
    },
}


@pytest.mark.parametrize("odd", ODD_FIELDS)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_odd_fields_of_a_reply_do_not_keep_others_from_being_stored(
    odd,
    calling,
    serve,
):
    def behaviour(request, _number):
        is_odd = request["messages"][0]["content"] == "odd"
        return completion(**ODD_FIELDS[odd]) if is_odd else completion()

    server = serve(behaviour)
    odd_call = call_to(server, name="openai/candidate", prompt="odd")
    call = call_to(server, name="openai/candidate", prompt="plain")

    odd_reply, reply = calling.call_at_once(odd_call, call)
    stored_reply = calling(call)

    assert isinstance(odd_reply, Reply)
    assert reply.status == "ok"
    assert reply.text == "hi"
    assert stored_reply.text == "hi"
    assert len(server.book) == 2


NO_VERDICTS = {
    "a text": "Yes, it is met.",
    "a number for true": '{"criteria_met": 1}',
    "ten megabytes of words": "criteria_met true " * 600_000,
    "endless nesting": "[" * 100_000,
}
VERDICTS = {
    "omitted thinking": (
        'it is {"criteria_met": true}?</think>{"criteria_met": false}',
        0.0,
    ),
    "with a lone surrogate": (
        '{"explanation": "cut \ud83d", "criteria_met": true}',
        1.0,
    ),
    "with a lone surrogate as an escape": (
        '{"explanation": "cut \\ud83d", "criteria_met": true}',
        1.0,
    ),
    "with ten megabytes of explanation": (
        json.dumps({"explanation": "word " * 2_000_000, "criteria_met": True}),
        1.0,
    ),
}


def decide(
    calling: Calling, server: FaultServer, **settings: Any
) -> tuple[Reply, Any]:
    """Return a judge's reply and verdict on a criterion."""
    judge = Judge(
        name="hosted_vllm/judge",
        structured_output=False,
        omits_think_tag=True,
    )
    judge_config = JudgeConfig(
        judge=judge,
        judge_config_hash="a-hash",
        template="a template",
        template_hash="a-hash",
        grading="binary",
        judge_trial=1,
    )
    target = call_to(server, name=judge.name, **settings).target

    def work(gateway, _):
        criterion_judge = CriterionJudge(gateway, target, judge_config, judge_config)
        reply_spec = criterion_judge.reply_spec
        call = criterion_judge.call(reply_spec, "Is it met?", "a-cell")
        return call_and_parse(gateway, call, reply_spec)

    return calling.run(work)


@pytest.mark.parametrize("kind", VERDICTS)
def test_one_clear_object_is_a_verdict(kind, calling, serve):
    text, value = VERDICTS[kind]
    server = serve(HttpResponse(text))

    reply, verdict = decide(calling, server)

    assert reply.status == "ok"
    assert verdict.value == value
    assert "\ud83d" not in verdict.explanation
    assert len(server.book) == 1


@pytest.mark.parametrize("kind", NO_VERDICTS)
def test_anything_else_is_requested_again_with_a_reminder_and_then_is_a_parse_error(
    kind,
    calling,
    serve,
):
    text = NO_VERDICTS[kind]
    server = serve(HttpResponse(text))

    reply, verdict = decide(calling, server)

    first_request, second_request = server.book
    assert verdict is None
    assert reply.status == "parse_error"
    assert reply.attempts == 2
    assert re.fullmatch(".{1,300}", reply.error or "")
    assert second_request["messages"] == [
        *first_request["messages"],
        {"role": "assistant", "content": text},
        {"role": "user", "content": reminder("binary")},
    ]


def test_a_good_reply_to_a_reminder_makes_a_verdict(calling, serve):
    def behaviour(request, _number):
        if len(request["messages"]) == 1:
            return HttpResponse("Well, yes.")
        return HttpResponse('{"explanation": "it says so", "criteria_met": true}')

    reply, verdict = decide(calling, serve(behaviour))

    assert verdict.status == "met"
    assert reply.status == "ok"
    assert reply.attempts == 2
    assert len(reply.ledger_keys) == 2


CUT = HttpResponse("{", finish_reason="length")


@pytest.mark.parametrize(
    ("http_response", "status", "n_calls"),
    [(CUT, "truncated", 1), (failed(503), "provider_error", 2)],
)
def test_a_failed_judge_is_not_reminded(
    http_response, status, n_calls, calling, serve
):
    server = serve(http_response)

    reply, verdict = decide(calling, server)

    assert verdict is None
    assert reply.status == status
    assert [len(request["messages"]) for request in server.book] == [1] * n_calls


def test_a_failed_verdict_costs_both_replies(calling, serve):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 0,
        "total_tokens": 1000,
    }
    server = serve(HttpResponse("words", usage=usage))

    reply, _ = decide(calling, server, prices=Prices(3.0, None, 9.0, "a list"))

    assert reply.cost_usd == pytest.approx(0.006)


USAGES: dict[str, Any] = {
    "nothing": None,
    "a text": "many",
    "a list": [1, 2],
    "figures as texts": {"prompt_tokens": "7", "completion_tokens": "3"},
    "no numbers": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
    "one figure is a text": USAGE | {"completion_tokens": "three"},
    "halves": USAGE | {"completion_tokens": 2.5},
}


@pytest.mark.parametrize(("usage", "route"), in_turn(USAGES, ROUTES))
def test_an_odd_usage_is_unknown_and_the_reply_stays(usage, route, calling, serve):
    server = serve(HttpResponse("A debt.", usage=USAGES[usage]))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert len(server.book) == 1
    assert reply.prompt_tokens is None
    assert reply.completion_tokens is None
    assert reply.reasoning_tokens is None
    assert reply.cost_usd is None


@pytest.mark.parametrize("route", CHAT)
def test_a_detail_of_the_usage_that_is_none_spoils_no_other(route, calling, serve):
    usage = {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": "most"},
        "completion_tokens_details": "no",
        "total_tokens": "x",
    }
    server = serve(HttpResponse("A debt.", usage=usage))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.prompt_tokens == 7
    assert reply.completion_tokens == 3
    assert reply.cached_tokens is None


@pytest.mark.parametrize(
    ("word", "route"),
    in_turn(["stop", "eos_token", "STOP_SEQUENCE", "endTurn"], CHAT),
)
def test_a_word_of_success_is_stored_as_it_came(word, route, calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason=word))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert reply.finish_reason == word
    assert len(server.book) == 1


@pytest.mark.parametrize(("reason", "route"), in_turn([None, "", " "], CHAT[:2]))
def test_a_whole_reply_needs_no_word(reason, route, calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason=reason))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert reply.finish_reason is None


def test_a_provider_s_own_word_for_a_cut_reply_is_understood(calling, serve):
    reply = calling(call_to(serve(HttpResponse("A de", finish_reason="MAX_TOKENS"))))

    assert reply.status == "truncated"
    assert reply.finish_reason == "length"


@pytest.mark.parametrize("status", [b"1e999", b"1" + 30 * b"0", b'"ok"'])
async def test_an_impossible_status_in_a_batch_is_the_failure_of_its_call(
    status, calling, serve
):
    server = serve(HttpResponse("A debt."))
    server.change_line = lambda line, _number: line.replace(
        b'"status_code": 200', b'"status_code": ' + status
    )

    batching = await calling.batched([call_to(server, name="openai/candidate")])

    assert [reply.status for reply in batching.replies] == ["provider_error"]


async def test_the_same_holds_for_the_results_of_a_batch(calling, serve):
    usage = {"prompt_tokens": "7", "completion_tokens": 3}
    server = serve(HttpResponse("A debt.", finish_reason=None, usage=usage))
    odd_fields = b'"reasoning_content": ["Hm."], "audio": {}, "content"'
    parts = json.dumps([THINKING, TEXT]).encode()

    def change_line(line: bytes, _number: int) -> bytes:
        line = line.replace(b'"content"', odd_fields)
        return line.replace(b'"A debt."', parts)

    server.change_line = change_line

    batching = await calling.batched([call_to(server, name="openai/candidate")])

    [reply] = batching.replies
    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert reply.finish_reason is None
    assert reply.prompt_tokens is None
