"""Replies with an odd value in any of their fields: each is the outcome of its call, which is
stored.
"""

import copy
import json
import tempfile
from collections.abc import Iterator
from itertools import compress, product
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.limiter import NotCalled
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import DECISION_ROUTES, ROUTES, Calling, call_to
from tests.tasks.llm.transport.test_ends import EVENTS, RESPONSE, USAGE

JsonObject = dict[str, Any]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("hurried"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]

LOGPROBS = {
    "content": [
        {"token": "A debt.", "logprob": -0.1, "bytes": [65], "top_logprobs": []}
    ],
    "refusal": None,
}
MESSAGE = {
    "role": "assistant",
    "content": "A debt.",
    "refusal": None,
    "reasoning_content": "Hm.",
    "tool_calls": None,
}
CHOICE = {
    "index": 0,
    "finish_reason": "stop",
    "logprobs": LOGPROBS,
}
COMPLETION: JsonObject = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "system_fingerprint": "f",
    "error": None,
    "choices": [{**CHOICE, "message": MESSAGE}],
    "usage": {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
}
PIECE: JsonObject = {
    **COMPLETION,
    "object": "chat.completion.chunk",
    "choices": [{**CHOICE, "delta": MESSAGE}],
}
EMBEDDINGS: JsonObject = {
    "object": "list",
    "model": "m",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}],
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}
DECISIONS: JsonObject = {
    "id": "d",
    "model": "m",
    "answers": [{"type": "predicate", "name": "c1", "probability": 0.5}],
    "usage": {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
    },
}
QUESTIONS = [{"type": "predicate", "name": "c1", "instructions": "Is it?"}]
BODIES: dict[str, JsonObject] = {
    "vllm": COMPLETION,
    "openai": COMPLETION,
    "streamed": PIECE,
    "openai-streamed": PIECE,
    "responses": RESPONSE,
    "embedding": EMBEDDINGS,
    "decisions": DECISIONS,
}
"""Route -> the body of a good reply."""
TARGETS: dict[str, JsonObject] = {
    **ROUTES,
    "embedding": {"name": "openai/c", "parameters": {"api": "embedding"}},
    "decisions": {**DECISION_ROUTES["decisions"], "questions": QUESTIONS},
}
"""Route -> target settings."""

ODD: list[Any] = [
    None,
    True,
    5,
    -1,
    0.5,
    float("nan"),
    float("inf"),
    10**400,
    "",
    "x",
    "cut \ud83d",
    [],
    {},
    [5],
    [None],
    [[]],
    {"a": 1},
    {"type": "text"},
    {"content": 5},
    {"token": 5, "logprob": "x"},
]
DEEP = "[" * 900 + "]" * 900


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields in a body."""
    if path:
        yield path
    fields = ()
    if isinstance(value, dict):
        fields = value.items()
    elif isinstance(value, list):
        fields = enumerate(value)
    for name, inner in fields:
        yield from paths_in(inner, (*path, name))


def with_field(
    body: JsonObject,
    path: tuple[Any, ...],
    value: Any,
) -> JsonObject:
    changed = copy.deepcopy(body)
    holder = changed
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return changed


def response_of(body: str, *, is_streamed: bool) -> HttpResponse:
    if is_streamed:
        events = f"data: {body}\n\ndata: [DONE]\n\n"
        return HttpResponse(raw=events.encode(), headers=EVENTS)
    return HttpResponse(raw=body.encode())


def outcomes(route: str, bodies: list[str]) -> list[Any]:
    """The replies to calls that get these bodies, or the exceptions; final ones are the same in a
    later run.
    """
    target = TARGETS[route]
    is_streamed = target.get("is_streamed", False)

    def behaviour(request, _number):
        number = int(prompt_of(request))
        return response_of(bodies[number], is_streamed=is_streamed)

    with tempfile.TemporaryDirectory() as folder, FaultServer(behaviour) as server:
        calling = Calling(Path(folder) / "ledger", attempts=1, concurrency=64)
        calls = [
            call_to(server, str(number), timeout_s=60.0, **target)
            for number in range(len(bodies))
        ]
        replies = calling.call_at_once(*calls)
        n_calls = len(server.book)
        are_final = [getattr(reply, "is_final", False) for reply in replies]
        final_replies = list(compress(replies, are_final))
        stored_replies = calling.call_at_once(*compress(calls, are_final))
        assert len(server.book) == n_calls
    for reply, stored_reply in zip(final_replies, stored_replies, strict=True):
        assert stored_reply.status == reply.status
    return replies


NEEDED = {
    ("error",),
    ("choices",),
    ("choices", 0),
    ("choices", 0, "message"),
    ("choices", 0, "delta"),
    ("choices", 0, "message", "content"),
    ("choices", 0, "message", "refusal"),
    ("choices", 0, "delta", "content"),
    ("choices", 0, "delta", "refusal"),
    ("choices", 0, "finish_reason"),
}
"""The fields of a completion with its text, its end and its errors, and those that hold them."""


STATUSES = {
    "ok",
    "empty",
    "unclear",
    "refused",
    "truncated",
    "provider_error",
    "context_length",
    "timeout",
}


def assert_outcomes(replies: list[Any]):
    for reply in replies:
        assert isinstance(reply, NotCalled) or reply.status in STATUSES, reply


TWINS = [("vllm", "openai"), ("streamed", "openai-streamed")]
"""Routes whose replies have the same form."""


def odd_changes(route: str) -> list[tuple[tuple[Any, ...], Any]]:
    """Each field with each odd value; twins share these pairs, whose number for a field is odd."""
    changes = list(product(paths_in(BODIES[route]), [*ODD, "DEEP"]))
    for twins in TWINS:
        if route in twins:
            return changes[twins.index(route) :: 2]
    return changes


@pytest.mark.parametrize("route", BODIES)
def test_an_odd_value_in_any_field_is_an_outcome_and_loses_no_reply_that_can_do_without(
    route,
):
    body = BODIES[route]
    changes = odd_changes(route)
    bodies = [
        json.dumps(with_field(body, *change)).replace('"DEEP"', DEEP)
        for change in changes
    ]

    replies = outcomes(route, bodies)

    assert_outcomes(replies)
    if body in (COMPLETION, PIECE):
        for reply, (path, value) in zip(replies, changes, strict=True):
            if path not in NEEDED and value != "DEEP":
                assert getattr(reply, "text", None) == "A debt.", (path, value, reply)
