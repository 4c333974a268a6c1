"""Sent parameters: every parameter of a configuration, on each of the three routes, as the server
gets it.
"""

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.config.models import Model
from tasks.llm.calls.sending import chat_arguments
from tasks.llm.request import Call
from tasks.rules.verdict import reply_format
from tasks.run.judge_configs import target_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import Calling

Parameters = dict[str, Any]

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is a bond?"},
]


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


def sent_body(
    calling: Calling,
    server: FaultServer,
    shape: Any = None,
    **settings: Any,
) -> Parameters:
    """Make a call to a configured model, and return the body of its request."""
    model = Model.model_validate(
        {
            "name": "openai/gpt-5",
            "api_base": server.api_base,
            **settings,
        }
    )
    call = Call(target_of(model), MESSAGES, "a-cell", response_format=shape)
    assert calling(call).status == "ok"
    [entry] = server.entries
    assert entry.path == PATHS[model.api]
    return dict(entry.request)


def test_nothing_is_sent_that_was_not_configured(calling, serve):
    body = sent_body(calling, serve(HttpResponse("x")))

    assert body.pop("stream", False) is False
    assert body == {"model": "gpt-5", "messages": MESSAGES}


def test_a_streamed_call_also_requests_its_usage(calling, serve):
    body = sent_body(calling, serve(HttpResponse("x")), stream=True)

    assert body == {
        "model": "gpt-5",
        "messages": MESSAGES,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_nothing_is_sent_to_the_responses_api_that_was_not_configured(calling, serve):
    body = sent_body(calling, serve(HttpResponse("x")), api="responses")

    messages = [(item["role"], item["content"]) for item in body.pop("input")]
    parameters = {name: value for name, value in body.items() if value is not None}
    assert messages == [("system", "Be brief."), ("user", "What is a bond?")]
    assert parameters == {"model": "gpt-5"}


VLLM = "hosted_vllm/candidate"
SHAPE = reply_format(200, "binary")
SAMPLING: Parameters = {
    "temperature": 0.0,
    "seed": 7,
    "params": {"top_p": 0.5},
}
SENT_SAMPLING = {
    "temperature": 0.0,
    "seed": 7,
    "top_p": 0.5,
}
SENT: list[tuple[str, Parameters, Parameters]] = [
    ("openai/gpt-5", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    (VLLM, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ("openai/gpt-4o", SAMPLING, SENT_SAMPLING),
    (VLLM, SAMPLING, SENT_SAMPLING),
    ("openai/gpt-4o", {"max_tokens": 77}, {"max_tokens": 77}),
    (VLLM, {"max_tokens": 77}, {"max_tokens": 77}),
    (
        "openai/gpt-4o-search-preview",
        {"web_search": True},
        {"web_search_options": {}},
    ),
    ("openai/gpt-4o", {"shape": SHAPE}, {"response_format": SHAPE}),
]
"""Model, settings, and the parameters that are sent."""
TOOL = {"type": "file_search", "vector_store_ids": ["a"]}
SENT_TO_RESPONSES: list[tuple[str, Parameters, Parameters]] = [
    ("openai/gpt-5", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
    (
        "openai/gpt-4o",
        {"temperature": 0.5, "max_tokens": 77},
        {"temperature": 0.5, "max_output_tokens": 77},
    ),
    (
        "openai/gpt-5",
        {
            "web_search": True,
            "code_interpreter": True,
            "params": {"tools": [TOOL]},
        },
        {
            "tools": [
                TOOL,
                {"type": "web_search"},
                {"type": "code_interpreter", "container": {"type": "auto"}},
            ]
        },
    ),
    (
        "openai/gpt-4o",
        {"shape": SHAPE},
        {"text": {"format": {"type": "json_schema", **SHAPE["json_schema"]}}},
    ),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "settings", "expected"), SENT)
def test_settings_are_sent(name, settings, expected, stream, calling, serve):
    body = sent_body(
        calling,
        serve(HttpResponse("x")),
        name=name,
        stream=stream,
        **settings,
    )

    assert {parameter: body[parameter] for parameter in expected} == expected


@pytest.mark.parametrize(("name", "settings", "expected"), SENT_TO_RESPONSES)
def test_settings_are_sent_to_the_responses_api(
    name,
    settings,
    expected,
    calling,
    serve,
):
    server = serve(HttpResponse("x"))

    body = sent_body(calling, server, name=name, api="responses", **settings)

    assert {parameter: body[parameter] for parameter in expected} == expected


def test_a_thinking_budget_is_sent_as_the_library_takes_it():
    # OpenAI's interface has no field for it, so the server's requests cannot show it.
    arguments = chat_arguments({"thinking_budget_tokens": 2048, "temperature": 1.0})

    assert arguments == {
        "temperature": 1.0,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }


@pytest.mark.parametrize(
    "settings",
    [{"name": "hosted_vllm/c"}, {"name": "openai/gpt-5", "api": "responses"}],
)
def test_a_thinking_budget_is_refused_where_it_would_not_be_sent(settings):
    assert Model.model_validate(settings).thinking_budget_tokens is None
    with pytest.raises(ValidationError, match="thinking_budget_tokens"):
        Model.model_validate(settings | {"thinking_budget_tokens": 2048})


@pytest.mark.parametrize(
    "settings",
    [{}, {"stream": True}, {"api": "responses"}],
    ids=["chat", "streamed", "responses"],
)
def test_headers_and_the_key_are_sent(settings, calling, serve):
    server = serve(HttpResponse("x"))

    sent_body(calling, server, headers={"X-Team": "blue"}, **settings)

    headers = server.entries[0].headers
    assert headers["x-team"] == "blue"
    assert headers["authorization"] == "Bearer sk-of-the-tests"


@pytest.mark.parametrize("word", ["MAX_TOKENS", "content_filter"])
def test_a_word_for_a_cut_or_filtered_reply_cannot_be_accepted(word):
    with pytest.raises(ValidationError, match="ends_ok"):
        Model.model_validate({"name": "openai/gpt-5", "ends_ok": [word]})
