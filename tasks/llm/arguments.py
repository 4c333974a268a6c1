"""The parameters of a call as LiteLLM takes them: for chat completions, the responses API or embeddings."""

from collections.abc import Mapping
from typing import Any

from tasks.llm.redaction import filled_in, filled_in_secrets

RESPONSES, EMBEDDING = "responses", "embedding"
"""The values of the parameter `api` that ask for the responses API, and for the vector of a text."""
_OWN = frozenset({"api", "thinking_budget_tokens", "web_search", "code_interpreter", "headers"})


def chat_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters as LiteLLM takes them for chat completions."""
    sent = {name: value for name, value in parameters.items() if name not in _OWN}
    if (budget := parameters.get("thinking_budget_tokens")) is not None:
        sent["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if parameters.get("web_search"):
        sent["web_search_options"] = {}
    return {**filled_in_secrets(sent), **_headers(parameters)}


def response_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters as LiteLLM takes them for the responses API."""
    moved = {"max_tokens", "reasoning_effort", "response_format", "tools"}
    sent = {name: value for name, value in parameters.items() if name not in _OWN | moved}
    if "max_tokens" in parameters:
        sent["max_output_tokens"] = parameters["max_tokens"]
    if "reasoning_effort" in parameters:
        sent["reasoning"] = {"effort": parameters["reasoning_effort"]}
    if shape := parameters.get("response_format"):
        sent["text"] = {"format": {"type": shape["type"], **shape["json_schema"]}}
    tools = list(parameters.get("tools") or ())
    if parameters.get("web_search"):
        tools.append({"type": "web_search"})
    if parameters.get("code_interpreter"):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    return {**filled_in_secrets(sent | ({"tools": tools} if tools else {})), **_headers(parameters)}


def embedding_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters as LiteLLM takes them for embeddings."""
    sent = {name: value for name, value in parameters.items() if name not in _OWN}
    return {**filled_in_secrets(sent), **_headers(parameters)}


def _headers(parameters: Mapping[str, Any]) -> dict[str, Any]:
    headers = parameters.get("headers")
    return {"extra_headers": {name: filled_in(value) for name, value in headers.items()}} if headers else {}
