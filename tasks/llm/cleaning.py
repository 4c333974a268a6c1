"""What LiteLLM gets of a completion: only the fields that are used, each of the type that it reads.

LiteLLM fails on any other type, also in fields that nobody needs, and the paid reply would be lost.
"""

import json
import math
from typing import Any

from tasks.llm.usage import JsonObject, as_object, is_count, openai_form
from tasks.rules.content import content_of, thinking_of
from tasks.rules.ends import End, end_word, meaning_of

CleanObject = dict[str, Any]
"""A JSON object with only the fields that LiteLLM may read."""
_MAIN_FIGURES = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


def cleaned(content: JsonObject, *, is_event: bool = False) -> CleanObject:
    """Return a reply, or an event of a streamed one, as LiteLLM can read it.

    `Body.look_at` keeps what is replaced here.
    """
    if "choices" in content:
        return _clean_completion(content, is_event=is_event)
    clean = dict(content)
    if content.get("usage") is not None:
        clean["usage"] = _clean_usage(content)
    return clean


def _clean_completion(content: JsonObject, *, is_event: bool) -> CleanObject:
    """Return a completion in OpenAI's form."""
    clean: CleanObject = {
        "id": _text(content.get("id")) or "",
        "object": "chat.completion.chunk" if is_event else "chat.completion",
        "created": 0,
        "choices": [],
        "model": None,
    }
    choice = first(content.get("choices"))
    message = message_in(choice, is_event=is_event)
    if message is not None:
        clean["choices"] = [clean_choice(choice, message, is_event=is_event)]
    for name in ("model", "system_fingerprint", "service_tier"):
        if isinstance(content.get(name), str):
            clean[name] = content[name]
    citations = content.get("citations")
    if isinstance(citations, list):  # LiteLLM prices those of Perplexity
        clean["citations"] = [citation for citation in citations if isinstance(citation, str)]
    if content.get("usage") is not None:
        clean["usage"] = _figures(_clean_usage(content) or {})
    if content.get("error"):
        clean["error"] = content["error"]
    return clean


def message_in(choice: Any, *, is_event: bool) -> CleanObject | None:
    """Return the message of a choice; None if it has none.

    The choice of an event has a `delta` instead, an empty one if it is missing; some servers send
    the whole message.
    """
    if not isinstance(choice, dict):
        return None
    names = ("delta", "message") if is_event else ("message", "delta")
    for name in names:
        message = choice.get(name)
        if isinstance(message, dict):
            return message
    return {} if is_event else None


def clean_choice(choice: JsonObject, message: JsonObject, *, is_event: bool) -> CleanObject:
    """Return a choice with its message, which an event has as its `delta`."""
    stated_reason = choice.get("finish_reason")
    finish_reason = end_word(stated_reason)
    is_text = finish_reason == stated_reason
    if finish_reason and (not is_text or meaning_of(finish_reason) is End.TROUBLE):
        # Some routes end a stream at such a word, and its text and usage would be lost.
        finish_reason = "stop"
    logprobs = choice.get("logprobs")
    return {
        "index": 0,  # one choice is requested; some servers count tokens here
        "delta" if is_event else "message": _clean_message(message),
        "finish_reason": finish_reason,
        "logprobs": logprobs if isinstance(logprobs, dict) else None,
    }


def _clean_message(message: JsonObject) -> CleanObject:
    content = content_of(message.get("content"))
    clean: CleanObject = {"role": "assistant", "content": None}
    if message.get("content") is not None:
        clean["content"] = content.text
    thinking = content.thinking or thinking_of(message)
    if thinking:
        clean["reasoning_content"] = thinking
        clean["reasoning"] = thinking  # LiteLLM's route to OpenRouter reads only this one
    if isinstance(message.get("refusal"), str):
        clean["refusal"] = message["refusal"]
    tool_calls = message.get("tool_calls")
    if isinstance(tool_calls, list) and tool_calls:
        clean["tool_calls"] = [
            _clean_tool_call(call) for call in tool_calls if isinstance(call, dict)
        ]
    annotations = message.get("annotations")
    if isinstance(annotations, list):
        types = [as_object(annotation).get("type") for annotation in annotations]
        if "url_citation" in types:  # LiteLLM prices a search by its citations
            clean["annotations"] = [{"type": "url_citation", "url_citation": {}}]
    return clean


def _clean_tool_call(call: JsonObject) -> CleanObject:
    function = as_object(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {})
    clean = {
        "id": _text(call.get("id")),
        "type": "function",
        "function": {"name": _text(function.get("name")), "arguments": arguments},
    }
    if is_count(call.get("index")):
        clean["index"] = call["index"]
    return clean


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _clean_usage(content: JsonObject) -> CleanObject | None:
    """Return a report of usage with valid figures, counted as OpenAI does."""
    report = openai_form(valid_usage(content["usage"]))
    if not report and content.get("object") == "response":
        return None  # the responses API accepts no empty report
    return report


_LARGEST_FIGURE = 10**12


def _figures(report: JsonObject, *, is_detail: bool = False) -> CleanObject:
    """Return only the numbers of a report and of its details; those of details must be whole."""
    figures: CleanObject = {}
    for name, value in report.items():
        if isinstance(value, dict) and not is_detail:
            figures[name] = _figures(value, is_detail=True)
        is_figure = is_count(value) or (isinstance(value, float) and not is_detail)
        if is_figure and abs(value) <= _LARGEST_FIGURE:
            figures[name] = value
    return figures


def without_decisions(content: JsonObject) -> CleanObject:
    """Return the body of a decision model without its decisions, with the total of tokens that
    LiteLLM needs.
    """
    report = valid_usage(content.get("usage"))
    n_input = report.get("input_tokens") or 0
    n_output = report.get("output_tokens") or 0
    usage = {
        **report,
        "input_tokens": n_input,
        "output_tokens": n_output,
        "total_tokens": n_input + n_output,
    }
    no_decisions = type(content["answers"])()  # an empty list or object
    return {**content, "answers": no_decisions, "usage": usage}


def valid_usage(usage: Any) -> CleanObject:
    """Return a report of usage with valid figures only; an empty one if a main figure is
    invalid.
    """
    figures: CleanObject = {}
    for name, value in as_object(usage).items():
        is_invalid_count = name.endswith("tokens") and value is not None and not is_count(value)
        if is_invalid_count and name in _MAIN_FIGURES:
            return {}
        is_invalid_number = isinstance(value, float) and not math.isfinite(value)
        if not (is_invalid_count or is_invalid_number):
            is_details = name.endswith("_details") and value is not None
            figures[name] = valid_usage(value) if is_details else value
    return figures


def first(values: Any) -> Any:
    """Return the first value of a list; None if there is none, or no list."""
    return values[0] if isinstance(values, list) and values else None


def object_in(text: bytes) -> CleanObject | None:
    """Return a JSON object; None if the text is none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
