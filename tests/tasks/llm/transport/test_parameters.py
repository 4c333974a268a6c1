"""Sent parameters: every parameter of a configuration, on each of the three routes, as the server
gets it.
"""

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.config.models import Judge, Model
from tasks.llm.calls.sending import chat_arguments
from tasks.llm.request import Call
from tasks.rules.verdict import reply_format
from tasks.run.judge_configs import judge_target, target_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import Calling, Serve

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is a bond?"},
]


def sent(
    calling: Calling, server: FaultServer, shape: Any = None, **configured: Any
) -> dict[str, Any]:
    """Make a call to a configured model, and return the body of its request."""
    model = Model.model_validate({"name": "openai/gpt-5", "api_base": server.api_base} | configured)
    assert calling(Call(target_of(model), MESSAGES, "a-cell", response_format=shape)).status == "ok"
    (entry,) = server.entries
    assert ("/v1/responses" if model.api == "responses" else "/v1/chat/completions") == entry.path
    return dict(entry.request)


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_sent_that_was_not_configured(
    stream: bool, calling: Calling, serve: Serve
) -> None:
    body = sent(calling, serve(HttpResponse("x")), stream=stream)
    streaming = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    assert {
        "model": "gpt-5",
        "messages": MESSAGES,
        **streaming,
    } == {k: v for k, v in body.items() if v is not False}


def test_nothing_is_sent_to_the_responses_api_that_was_not_configured(
    calling: Calling, serve: Serve
) -> None:
    body = sent(calling, serve(HttpResponse("x")), api="responses")
    given = [(item["role"], item["content"]) for item in body.pop("input")]
    assert given == [("system", "Be brief."), ("user", "What is a bond?")]
    assert {name: value for name, value in body.items() if value is not None} == {"model": "gpt-5"}


VLLM = "hosted_vllm/candidate"
SHAPE = reply_format(200)
SAMPLING: dict[str, Any] = {
    "temperature": 0.0,
    "seed": 7,
    "params": {"top_p": 0.5},
}
SENT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(
        (name, {"reasoning_effort": "low"}, {"reasoning_effort": "low"})
        for name in ("openai/gpt-5", VLLM)
    ),
    *(
        (
            name,
            SAMPLING,
            {
                "temperature": 0.0,
                "seed": 7,
                "top_p": 0.5,
            },
        )
        for name in ("openai/gpt-4o", VLLM)
    ),
    *((name, {"max_tokens": 77}, {"max_tokens": 77}) for name in ("openai/gpt-4o", VLLM)),
    ("openai/gpt-4o-search-preview", {"web_search": True}, {"web_search_options": {}}),
    ("openai/gpt-4o", {"shape": SHAPE}, {"response_format": SHAPE}),
]
TOOL = {"type": "file_search", "vector_store_ids": ["a"]}
SENT_TO_RESPONSES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
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


@pytest.mark.parametrize(
    ("way", "name", "given", "wanted"),
    [
        *(({"stream": is_streamed}, *case) for case in SENT for is_streamed in (False, True)),
        *(({"api": "responses"}, *case) for case in SENT_TO_RESPONSES),
    ],
)
def test_what_is_set_is_sent(
    way: Any, name: str, given: Any, wanted: Any, calling: Calling, serve: Serve
) -> None:
    body = sent(calling, serve(HttpResponse("x")), name=name, **way, **given)
    assert wanted == {name: body[name] for name in wanted}


def test_a_thinking_budget_is_sent_as_the_library_takes_it() -> None:
    """OpenAI's interface has no field for it, so the server's requests cannot show it."""
    arguments = chat_arguments({"thinking_budget_tokens": 2048, "temperature": 1.0})
    assert arguments == {"temperature": 1.0, "thinking": {"type": "enabled", "budget_tokens": 2048}}


@pytest.mark.parametrize(
    "way", [{"name": "hosted_vllm/c"}, {"name": "openai/gpt-5", "api": "responses"}]
)
def test_a_thinking_budget_is_refused_where_it_would_not_be_sent(way: dict[str, Any]) -> None:
    assert Model.model_validate(way).thinking_budget_tokens is None
    with pytest.raises(ValidationError, match="thinking_budget_tokens"):
        Model.model_validate(way | {"thinking_budget_tokens": 2048})


@pytest.mark.parametrize(
    "way", [{}, {"stream": True}, {"api": "responses"}], ids=["chat", "streamed", "responses"]
)
def test_headers_and_the_key_are_sent(way: dict[str, Any], calling: Calling, serve: Serve) -> None:
    server = serve(HttpResponse("x"))
    sent(calling, server, headers={"X-Team": "blue"}, **way)
    headers = server.entries[0].headers
    assert headers["x-team"] == "blue"
    assert headers["authorization"] == "Bearer sk-of-the-tests"


@pytest.mark.parametrize(
    ("changed", "changes_call"),
    [
        *(
            (changed, True)
            for changed in (
                {"reasoning_effort": "low"},
                {"temperature": 0.1},
                {"seed": 1},
                {"max_tokens": 5},
                {"web_search": True},
                {"thinking_budget_tokens": 5},
                {"api": "responses"},
                {"headers": {"x-a": "b"}},
                {"params": {"top_p": 0.1}},
            )
        ),
        ({"omits_think_tag": True}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("target_of_one", [target_of, judge_target])
def test_whatever_changes_a_reply_is_part_of_the_identity(
    target_of_one: Any, changed: Any, changes_call: bool
) -> None:
    targets = [
        target_of_one(Judge.model_validate({"name": "openai/gpt-5"} | more))
        for more in ({}, changed)
    ]
    keys = [(call := Call(to, MESSAGES, "c")).key(call.parameters(to.parameters)) for to in targets]
    assert targets[0].config_hash != targets[1].config_hash
    assert changes_call == (keys[0] != keys[1])


@pytest.mark.parametrize("target_of_one", [target_of, judge_target])
def test_accepted_ends_are_no_part_of_any_identity(target_of_one: Any) -> None:
    plain, accepting = (
        target_of_one(Judge.model_validate({"name": "openai/gpt-5", "ends_ok": words}))
        for words in ([], ["finished"])
    )

    assert accepting.ends_ok == ("finished",)
    assert plain.config_hash == accepting.config_hash
    assert plain.parameters == accepting.parameters


@pytest.mark.parametrize("word", ["length", "MAX_TOKENS", "content_filter"])
def test_a_word_for_a_cut_or_filtered_reply_cannot_be_accepted(word: str) -> None:
    with pytest.raises(ValidationError, match="ends_ok"):
        Model.model_validate({"name": "openai/gpt-5", "ends_ok": [word]})
