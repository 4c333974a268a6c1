"""The parameters of a call as LiteLLM takes them: for chat completions, the responses API or embeddings."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from tasks.llm import embedded
from tasks.llm.environment import filled_in, filled_in_secrets, key_state
from tasks.llm.litellm_setup import litellm, make_known, spare_work
from tasks.llm.prices import cost_usd, prices_of
from tasks.llm.replies import Reply, failure_of, from_chat, from_embedding, from_response, logprobs_in
from tasks.llm.request import EMBEDDING, RESPONSES, Call, Prices, Target
from tasks.llm.transport import Exchange, watched
from tasks.rules.errors import PipelineError

_OWN = frozenset({"api", "thinking_budget_tokens", "web_search", "code_interpreter", "headers"})


def chat_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters as LiteLLM takes them for chat completions."""
    more: dict[str, Any] = {"web_search_options": {}} if parameters.get("web_search") else {}
    if (budget := parameters.get("thinking_budget_tokens")) is not None:
        more["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return arguments_of(parameters, more)


def response_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters as LiteLLM takes them for the responses API."""
    more: dict[str, Any] = {}
    if "max_tokens" in parameters:
        more["max_output_tokens"] = parameters["max_tokens"]
    if "reasoning_effort" in parameters:
        more["reasoning"] = {"effort": parameters["reasoning_effort"]}
    if shape := parameters.get("response_format"):
        more["text"] = {"format": {"type": shape["type"], **shape["json_schema"]}}
    tools = list(parameters.get("tools") or ())
    if parameters.get("web_search"):
        tools.append({"type": "web_search"})
    if parameters.get("code_interpreter"):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    if tools:
        more["tools"] = tools
    return arguments_of(parameters, more, {"max_tokens", "reasoning_effort", "response_format", "tools"})


def arguments_of(parameters: Mapping[str, Any], more: Mapping[str, Any], moved: Collection[str] = ()) -> dict[str, Any]:
    """What LiteLLM takes by our names, as it is for embeddings, and more in the place of some that were moved."""
    sent = {name: value for name, value in parameters.items() if name not in _OWN and name not in moved}
    headers = {name: filled_in(value) for name, value in (parameters.get("headers") or {}).items()}
    return {**filled_in_secrets({**sent, **more}), **({"extra_headers": headers} if headers else {})}


Sender = Callable[[Call, Mapping[str, Any]], Awaitable[Reply]]
"""Makes one attempt of a call with these parameters, and returns its outcome; it keeps no state and never raises for a
call that failed, only `NoSender`. `send` makes it in this process; limits, budget, ledger and retries stay with the
gateway.
"""


class NoSender(PipelineError):
    """Nothing is there that could make an attempt, so nothing was sent."""


async def send(call: Call, parameters: Mapping[str, Any]) -> Reply:
    """Make one attempt. A failure is a reply too, with its status and cause; nothing is raised for it."""
    target, prices = call.target, prices_of(call.target)
    spare_work(must_price=_is_priced_by_litellm(prices))
    started_s = time.monotonic()
    with watched() as exchange:
        try:
            async with asyncio.timeout(target.timeout_s):
                answer = await _ask(target, [dict(message) for message in call.messages], parameters)
            if exchange.fault is not None:
                raise exchange.fault  # noqa: TRY301 - a library that took it for the end of a reply kept it to itself
        except Exception as error:  # noqa: BLE001 - every failure of a call becomes its state, with the cause
            failure = failure_of(exchange.fault or error)
            if failure.is_about_key:
                failure = replace(failure, error=f"{failure.error}; check the key: {key_state(target)}")
            cause = failure.error if str(error) else f"no complete reply within {target.timeout_s:g} s"
            return replace(failure.reply, latency_s=time.monotonic() - started_s, error=cause)
    reply = _reply_of(answer, exchange, parameters.get("api"))
    cost = _cost_usd(answer, reply, prices)
    return replace(reply, cost_usd=cost, prices=prices, latency_s=time.monotonic() - started_s)


def _reply_of(answer: Any, exchange: Exchange, api: str | None) -> Reply:
    if api == RESPONSES:
        return from_response(answer)
    return from_embedding(answer) if api == EMBEDDING else from_chat(answer, exchange.body)


async def _ask(target: Target, messages: list[dict[str, str]], parameters: Mapping[str, Any]) -> Any:
    library, address = litellm(), _address(target)
    make_known(address["model"])
    common = {
        **address,
        # The time limit is kept in `send`, over the whole reply; this one only has to be no shorter.
        "timeout": target.timeout_s + 5,
        # Retries are made by the gateway and nowhere else; LiteLLM's own would be silent and long.
        "max_retries": 0,
        "num_retries": 0,
    }
    if parameters.get("api") == RESPONSES:
        return await library.aresponses(input=messages, **common, **response_arguments(parameters))
    if parameters.get("api") == EMBEDDING:
        texts = [message["content"] for message in messages]
        return await library.aembedding(input=texts, **common, **arguments_of(parameters, {}))
    logprobs = {"logprobs": True} if target.wants_logprobs else {}
    arguments = {"messages": messages, **common, **chat_arguments(parameters), **logprobs}
    if not target.is_streamed:
        return await library.acompletion(**arguments)
    stream = await library.acompletion(**arguments, stream=True, stream_options={"include_usage": True})
    pieces = [piece async for piece in stream]
    if stream.received_finish_reason is None:
        raise ConnectionError("the stream ended before the reply did")
    has_usage = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
    return _put_together(pieces, messages, has_usage=has_usage)


def _put_together(pieces: list[Any], messages: list[dict[str, str]], *, has_usage: bool) -> Any:
    """One completion of a stream's pieces, with what the provider said and nothing that LiteLLM made up."""
    whole = litellm().stream_chunk_builder(pieces, messages=messages)
    # LiteLLM puts the name that was asked for in every piece; what really answered stands beside it.
    names = [getattr(piece, "_hidden_params", {}).get("provider_response_model") for piece in pieces]
    whole.model = next((name for name in names if name), None)
    # LiteLLM leaves these out of what it puts together.
    choices = [piece.choices[0] for piece in pieces if piece.choices]
    content = [{"token": token, "logprob": logprob} for token, logprob in logprobs_in(choices) or ()]
    if content and whole.choices:
        whole.choices[0].logprobs = {"content": content}
    if not has_usage:
        whole.usage = None  # LiteLLM counts for itself where the provider says nothing
    return whole


def _address(target: Target) -> dict[str, Any]:
    if target.is_embedded:
        name = target.name.removeprefix(embedded.PREFIX)
        return {"model": f"hosted_vllm/{name}", "api_base": embedded.api_base(), "api_key": embedded.api_key()}
    return {"model": target.name} | ({"api_base": filled_in(target.api_base)} if target.api_base else {})


def _cost_usd(answer: Any, reply: Reply, prices: Prices) -> float | None:
    """What LiteLLM says a call of its table cost, which knows tiers and fees; else by the prices themselves."""
    known = cost_usd(prices, reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
    if known is None or not _is_priced_by_litellm(prices):
        return known
    stated = (getattr(answer, "_hidden_params", None) or {}).get("response_cost")
    return known if stated is None else float(stated)


def _is_priced_by_litellm(prices: Prices) -> bool:
    return (prices.price_table or "").startswith("litellm")
