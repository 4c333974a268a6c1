"""Reading the reply in a provider's response; the word for its end decides if it is complete."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasks.llm.bodies import Body
from tasks.llm.failures import failure_of_http, status_of_error
from tasks.llm.redaction import redacted, safe
from tasks.llm.replies import (
    EMPTY,
    OK,
    PROVIDER_ERROR,
    REFUSED,
    TRUNCATED,
    UNCLEAR,
    Failure,
    Kind,
    Logprobs,
    Reply,
)
from tasks.llm.request import DECISIONS, EMBEDDING, RESPONSES
from tasks.llm.usage import NO_REPORT, Tokens, tokens_in
from tasks.rules.content import content_of
from tasks.rules.ends import TOOL_CALLS, End, end_message, end_word, meaning_of
from tasks.rules.text.characters import is_blank, one_line, storable


def from_result(api: str | None, result: Any, body: Body) -> Reply:
    """Return the reply in LiteLLM's result of a call by its `api`, and the received body, without
    its cost and time.
    """
    try:
        reply = _READERS.get(api, _from_chat)(result, body)
    except Exception as error:  # noqa: BLE001 - a provider may put anything into a reply
        reply = _unreadable(body, f"{type(error).__name__}: {error}")
    tokens = _tokens(api, result, body)
    return replace(
        reply,
        served_model=_name(_get(result, "model")),
        served_fingerprint=_name(_get(result, "system_fingerprint")),
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=0 if api == EMBEDDING else tokens.completion,
        reasoning_tokens=tokens.reasoning,
        largest_usage=tokens.largest,
    )


def _tokens(api: str | None, result: Any, body: Body) -> Tokens:
    """Return the tokens in the received report of usage, or in LiteLLM's if its form is another."""
    tokens_by_litellm = tokens_in(_plain(_get(result, "usage") or {}))
    received_tokens = tokens_in(body.usage)
    # The embedded model makes a call for each question, and the last body has only its own usage.
    has_several_bodies = api == DECISIONS and body.decisions is None
    if has_several_bodies or received_tokens == NO_REPORT:
        return tokens_by_litellm
    if api is None and not body.is_completion:
        # LiteLLM also counts the reasoning that the reply shows.
        return received_tokens._replace(reasoning=tokens_by_litellm.reasoning)
    return received_tokens


def _from_chat(completion: Any, body: Body) -> Reply:
    if body.error:
        return _error_inside(body.error)
    if body.is_unreadable:
        return _unreadable(body, "its `choices` have no message")
    if not completion.choices:
        return Reply(EMPTY, error="the reply has no choices")
    choice = completion.choices[0]
    end, word = _end_of(choice, body)
    if body.unknown_type is not None:
        return replace(_with_unknown_part(body.unknown_type), finish_reason=word)
    reply = _reply_of_message(choice.message, body)
    if word is None and (body.is_stream or choice.finish_reason is None):
        return _unfinished(reply, "the stream ended without a word that the reply is complete")
    reply = _ended(reply, end, word)
    logprobs = logprobs_in([choice]) if reply.status == OK else None
    return replace(reply, finish_reason=word, logprobs=logprobs)


def _end_of(choice: Any, body: Body) -> tuple[End, str | None]:
    """Return how a completion ended, and the word to store for it.

    The provider's word in the body decides the end, or LiteLLM's if the body has another form than
    OpenAI's and no word. The word to store is LiteLLM's, unless there is none, or it is a `stop`
    that may stand for another word.
    """
    litellm_word = end_word(choice.finish_reason)
    deciding_word = body.stated_end
    if deciding_word is None and not body.is_completion:
        deciding_word = litellm_word
    end = meaning_of(deciding_word)
    if end is End.UNKNOWN and litellm_word in {"length", "content_filter"}:
        end = meaning_of(litellm_word)
    if deciding_word in TOOL_CALLS and litellm_word == "stop":  # LiteLLM made a text of the call
        end = End.COMPLETE
    is_stop_vague = body.is_completion or end is not End.COMPLETE
    if litellm_word is None or (litellm_word == "stop" and is_stop_vague):
        return end, _name(deciding_word)
    return end, _name(litellm_word)


def _reply_of_message(message: Any, body: Body) -> Reply:
    """Return a reply with the text of a message, or its refusal."""
    refusal = _get(message, "refusal")
    if not refusal:
        refusal = (message.provider_specific_fields or {}).get("refusal") or body.refusal
    reply = _storable_reply(message.content, refusal)
    if _get(message, "reasoning_content"):
        return _with_reasoning(reply, "`reasoning_content`")
    return reply


def _with_reasoning(reply: Reply, source: str) -> Reply:
    """Return a reply whose `source` has reasoning; it is empty if it has no other text."""
    if reply.status in {OK, EMPTY} and is_blank(reply.text):
        return Reply(
            EMPTY, error=f"the reply has no text, only {source}; a higher `max_tokens` may help"
        )
    return reply


def _unreadable(body: Body, cause: str) -> Reply:
    """Return the failure for a reply that cannot be read.

    If it was paid, it is not tried again, because another attempt would be paid too.
    """
    is_paid = bool(tokens_in(body.usage).prompt)
    kind = Kind.DECLINED if is_paid else Kind.DOWN
    return Failure(PROVIDER_ERROR, kind, safe(f"the reply cannot be read ({cause})")).reply


def _error_inside(error: Any) -> Reply:
    """Return the failure for an error that a provider put into a reply, which may be paid."""
    content = _plain(error)
    message = json.dumps(content, default=str)
    text = safe(f"the reply has an error: {message}")
    failure = failure_of_http(status_of_error(content), message, text)
    return failure._replace(is_unpaid=False).reply


def _with_unknown_part(part_type: str) -> Reply:
    return Reply(UNCLEAR, error=f"the reply has a part of unknown type: {_name(part_type)}")


def _ended(reply: Reply, end: End, word: str | None) -> Reply:
    """Return a reply, or the failure that its end makes of it; `word` is the word for the end."""
    if end is End.CUT:
        return Reply(TRUNCATED, error="the reply was cut at its token limit")
    if end is End.FILTERED:
        return Reply(REFUSED, error="the provider's content filter stopped the reply")
    if end is End.TROUBLE:
        return _unfinished(reply, f"the reply {end_message(word or '')}")
    if end is End.UNKNOWN:
        hint = "which is not known as the end of a complete reply; `ends_ok` accepts it"
        if reply.status == EMPTY:
            hint = "and has no text"
        return _not_accepted(reply, UNCLEAR, f"the reply {end_message(word or '')}, {hint}")
    return reply


def _unfinished(reply: Reply, error: str) -> Reply:
    """Return a reply as a temporary failure; a refusal stays one."""
    if reply.status == REFUSED:
        return reply
    failure = Failure(PROVIDER_ERROR, Kind.DOWN, error)
    return replace(_not_accepted(reply, PROVIDER_ERROR, error), failure=failure)


def _not_accepted(reply: Reply, status: str, error: str) -> Reply:
    """Return a reply as a failure that keeps its text for the ledger; a refusal stays one."""
    if reply.status not in {OK, EMPTY}:
        return reply
    return Reply(status, error=error, unaccepted_text=reply.text)


def logprobs_in(choices: Sequence[Any]) -> Logprobs | None:
    """Return the log-probabilities of a choice, or of the pieces of a streamed one; None if a token
    has none.
    """
    pairs = []
    for choice in choices:
        tokens = _get(_get(choice, "logprobs"), "content") or []
        if not isinstance(tokens, list):
            return None
        for token in tokens:
            text = _get(token, "token")
            logprob = _get(token, "logprob")
            if not isinstance(text, str) or not _is_number(logprob):
                return None
            pairs.append((storable(text), round(float(logprob), 6)))
    return tuple(pairs) or None


def _storable_reply(text: str | None, refusal: Any = None) -> Reply:
    """Return a reply whose text may be stored: without our secrets."""
    if refusal:
        return Reply(REFUSED, error=safe(str(refusal)))
    if not text:
        return Reply(EMPTY, error="the reply has no text")
    return Reply(OK, redacted(storable(text), is_reply=True))


def _from_response(response: Any, _: Body) -> Reply:
    word = end_word(_get(response, "status"))
    error = _get(response, "error")
    if word == "failed" or error:
        return replace(_error_inside(error), finish_reason=_name(word))
    if word == "incomplete":
        word = end_word(_get(_get(response, "incomplete_details"), "reason")) or word
    reply = _reply_of_items(response.output or ())
    if reply.status != UNCLEAR:
        reply = _ended(reply, meaning_of(word), _name(word))
    return replace(reply, finish_reason=_name(word))


def _reply_of_items(items: Sequence[Any]) -> Reply:
    """Return the reply in the items of a response's output, without regard to its end."""
    parts = []
    has_reasoning = False
    for item in items:
        if _get(item, "type") == "message":
            parts += [_plain(part) for part in _get(item, "content") or ()]
        if _get(item, "type") == "reasoning":
            has_reasoning = True
    content = content_of(parts)
    if content.unknown_type is not None:
        return _with_unknown_part(content.unknown_type)
    reply = _storable_reply(content.text, content.refusal)
    return _with_reasoning(reply, "reasoning") if has_reasoning else reply


def _plain(value: Any) -> Any:
    """Return a value without the class that LiteLLM may have given it."""
    return value.model_dump() if hasattr(value, "model_dump") else value


def _from_embedding(result: Any, _: Body) -> Reply:
    """Return the reply in a result with the vector of one text; its text is JSON."""
    data = _get(result, "data") or []
    if len(data) == 1:
        vector = _get(data[0], "embedding")
        is_vector = isinstance(vector, list) and all(_is_number(number) for number in vector)
        if is_vector and vector:
            # Numbers are not secrets; unchanged, the vector can be read back.
            return Reply(OK, json.dumps([float(number) for number in vector]))
    return Reply(EMPTY, error="the reply has no vector of finite numbers")


def _from_decisions(result: Any, body: Body) -> Reply:
    """Return the reply with the decisions in the received body if it has them, else in LiteLLM's
    result.

    Its text is JSON with `answers`.
    """
    if body.decisions is None:
        return _storable_reply(result.model_dump_json(include={"answers"}))
    return _storable_reply(body.decisions.decode(errors="replace"))


_READERS: dict[str | None, Callable[[Any, Body], Reply]] = {
    RESPONSES: _from_response,
    EMBEDDING: _from_embedding,
    DECISIONS: _from_decisions,
}
"""The parameter `api` -> what reads its results; `_from_chat` reads those of any other."""


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; JSON may hold integers beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _get(item: Any, name: str) -> Any:
    """Return a field of a value that LiteLLM returns as an object or as a mapping."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _name(value: Any) -> str | None:
    """Return a name from a provider as it may be stored, in one line of at most 200 characters;
    None if it is not a text.
    """
    if isinstance(value, str):
        return one_line(redacted(storable(value), is_reply=True), 200)
    return None
