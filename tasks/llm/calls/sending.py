"""One attempt of a call: from its parameters in LiteLLM's form to its outcome."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tasks.llm import embedded
from tasks.llm.exchange import Exchange
from tasks.llm.failures import failure_of, with_hints
from tasks.llm.litellm_setup import litellm, make_known, skip_unused_work
from tasks.llm.reading import from_result, logprobs_in
from tasks.llm.redaction import filled_in, filled_in_secrets
from tasks.llm.replies import Reply
from tasks.llm.request import DECISIONS, EMBEDDING, RESPONSES, Call, Parameters, Target, prices_of
from tasks.llm.transport import watched
from tasks.rules.errors import PipelineError

Arguments = dict[str, Any]
"""Arguments of a function of LiteLLM."""
_NOT_OF_LITELLM = frozenset(
    {"api", "thinking_budget_tokens", "web_search", "code_interpreter", "headers"}
)
"""Parameters that LiteLLM does not know, or takes in another form."""
_OTHER_IN_RESPONSES = frozenset({"max_tokens", "reasoning_effort", "response_format", "tools"})
"""Parameters that have another form in the responses API."""


def chat_arguments(parameters: Parameters) -> Arguments:
    """Return our parameters in LiteLLM's form for chat completions."""
    converted: Arguments = {}
    if parameters.get("web_search"):
        converted["web_search_options"] = {}
    budget = parameters.get("thinking_budget_tokens")
    if budget is not None:
        converted["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return arguments_of(parameters, converted)


def response_arguments(parameters: Parameters) -> Arguments:
    """Return our parameters in LiteLLM's form for the responses API."""
    converted: Arguments = {}
    if "max_tokens" in parameters:
        converted["max_output_tokens"] = parameters["max_tokens"]
    if "reasoning_effort" in parameters:
        converted["reasoning"] = {"effort": parameters["reasoning_effort"]}
    response_format = parameters.get("response_format")
    if response_format:
        converted["text"] = {
            "format": {"type": response_format["type"], **response_format["json_schema"]}
        }
    tools = list(parameters.get("tools") or ())
    if parameters.get("web_search"):
        tools.append({"type": "web_search"})
    if parameters.get("code_interpreter"):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    if tools:
        converted["tools"] = tools
    return arguments_of(parameters, converted, _OTHER_IN_RESPONSES)


def arguments_of(
    parameters: Parameters,
    converted: Parameters,
    omitted_names: Collection[str] = (),
) -> Arguments:
    """Return LiteLLM's arguments, with secrets filled in: our parameters that it takes unchanged,
    without the omitted ones; the converted ones; and our headers.
    """
    arguments = {
        name: value
        for name, value in parameters.items()
        if name not in _NOT_OF_LITELLM and name not in omitted_names
    }
    arguments = dict(filled_in_secrets({**arguments, **converted}))
    headers = parameters.get("headers")
    if headers:
        arguments["extra_headers"] = {name: filled_in(value) for name, value in headers.items()}
    return arguments


Sender = Callable[[Call, Parameters], Awaitable[Reply]]
"""Makes one attempt of a call with these parameters, and returns its outcome. It keeps no state. A
failed call is a reply and raises nothing; only `NoSender` is raised. `send` makes the attempt in
this process; limits, budget, ledger and retries belong to the gateway.
"""


class NoSender(PipelineError):
    """No process could make the attempt, so no request was sent."""


async def send(call: Call, parameters: Parameters) -> Reply:
    """Make one attempt. A failure is also a reply, with its status and cause; it does not raise."""
    prices = prices_of(call.target)
    is_priced_by_litellm = (prices.price_table or "").startswith("litellm")
    skip_unused_work(must_price=is_priced_by_litellm)
    started_s = time.monotonic()
    with watched() as exchange:
        try:
            result = await _result_of(call, parameters, exchange)
            reply = from_result(parameters.get("api"), result, exchange.body).priced(prices)
            if reply.cost_usd is not None and is_priced_by_litellm:
                reply = _with_cost_by_litellm(reply, result)
        except Exception as error:  # noqa: BLE001 - the failure becomes a reply
            reply = _failed_reply(call, parameters, error, exchange)
        else:
            reply = reply.accepted(call.target.ends_ok)
    return replace(reply, latency_s=time.monotonic() - started_s)


async def _result_of(call: Call, parameters: Parameters, exchange: Exchange) -> Any:
    """Return LiteLLM's result of a call within the target's time limit."""
    messages = [dict(message) for message in call.messages]
    async with asyncio.timeout(call.target.timeout_s):
        result = await _request(call.target, messages, parameters)
    if exchange.fault is not None:  # a library hid it, and took it for the end of the reply
        raise exchange.fault
    return result


def _with_cost_by_litellm(reply: Reply, result: Any) -> Reply:
    """Return a reply with the cost that LiteLLM states, which includes tiers and fees."""
    cost_usd = (getattr(result, "_hidden_params", None) or {}).get("response_cost")
    if cost_usd is None:
        return reply
    return replace(reply, cost_usd=float(cost_usd))


def _failed_reply(
    call: Call,
    parameters: Parameters,
    error: Exception,
    exchange: Exchange,
) -> Reply:
    failure = with_hints(failure_of(exchange.fault or error, exchange), call.target)
    # A decision or a vector has no harmless request: there is no reply of one token.
    if call.questions or parameters.get("api") == EMBEDDING:
        failure = failure._replace(request_fault=None)
    if isinstance(error, TimeoutError) and not str(error):
        cause = f"no complete reply within {call.target.timeout_s:g} s"
        failure = failure._replace(error=cause)
    return failure.reply


async def _request(target: Target, messages: list[dict[str, str]], parameters: Parameters) -> Any:
    """Send a request through LiteLLM, and return its result."""
    library = litellm()
    model_arguments = _model_arguments(target)
    make_known(model_arguments["model"])
    # `send` limits the time of the whole reply; LiteLLM's own limit must only not be shorter. Only
    # the gateway retries; LiteLLM's own retries would be silent and long.
    shared_arguments = {
        **model_arguments,
        "timeout": target.timeout_s + 5,
        "max_retries": 0,
        "num_retries": 0,
    }
    api = parameters.get("api")
    if api == RESPONSES:
        return await library.aresponses(
            input=messages, **shared_arguments, **response_arguments(parameters)
        )
    if api == EMBEDDING:
        texts = [message["content"] for message in messages]
        return await library.aembedding(
            input=texts, **shared_arguments, **arguments_of(parameters, {})
        )
    if api == DECISIONS:
        text = messages[0]["content"]  # the only message of such a call
        if target.is_embedded:
            return await embedded.decisions(text, parameters["questions"])
        return await library.adecisions(
            input=text, **shared_arguments, **arguments_of(parameters, {})
        )
    arguments = {
        "messages": messages,
        **shared_arguments,
        **chat_arguments(parameters),
    }
    if target.wants_logprobs:
        arguments["logprobs"] = True
    if target.is_streamed:
        return await _streamed_completion(arguments)
    return await library.acompletion(**arguments)


async def _streamed_completion(arguments: Parameters) -> Any:
    """Request a completion in pieces, and return it joined."""
    stream = await litellm().acompletion(
        **arguments, stream=True, stream_options={"include_usage": True}
    )
    pieces = [piece async for piece in stream]
    # The provider's own chunks: LiteLLM adds a piece with its own count if none of them has usage.
    has_usage = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
    completion = _joined_stream(pieces, arguments["messages"], has_usage=has_usage)
    if stream.received_finish_reason is None:
        choices = completion.choices
        if not choices or not (choices[0].message.content or has_usage):
            raise ConnectionError("the stream ended before the reply did")
        # The reply is paid for and perhaps complete: it is kept, without the word `stop` that
        # LiteLLM puts where the provider sent none. `ends_ok` decides.
        choices[0].finish_reason = None
    return completion


def _joined_stream(pieces: list[Any], messages: list[dict[str, str]], *, has_usage: bool) -> Any:
    """Return one completion from a stream's pieces, with only the provider's values, not LiteLLM's
    own.
    """
    completion = litellm().stream_chunk_builder(pieces, messages=messages)
    if completion is None:
        raise ConnectionError("the stream ended before the reply did")
    completion.model = _model_in(pieces)
    # LiteLLM leaves the log-probabilities out of the completion that it builds.
    choices = [piece.choices[0] for piece in pieces if piece.choices]
    logprobs = logprobs_in(choices)
    if logprobs and completion.choices:
        content = [{"token": token, "logprob": logprob} for token, logprob in logprobs]
        completion.choices[0].logprobs = {"content": content}
    if not has_usage:
        completion.usage = None  # LiteLLM counts tokens itself if the provider reports none
    return completion


def _model_in(pieces: Sequence[Any]) -> str | None:
    """Return the model that replied: in every piece, LiteLLM replaces its name by the requested
    one, and keeps it only in the hidden parameters.
    """
    for piece in pieces:
        model: str | None = getattr(piece, "_hidden_params", {}).get("provider_response_model")
        if model:
            return model
    return None


def _model_arguments(target: Target) -> Arguments:
    """Return the arguments that name a model and its address."""
    if target.is_embedded:
        name = target.name.removeprefix(embedded.PREFIX)
        return {
            "model": f"hosted_vllm/{name}",
            "api_base": embedded.api_base(),
            "api_key": embedded.API_KEY,
        }
    arguments = {"model": target.name}
    if target.api_base:
        arguments["api_base"] = filled_in(target.api_base)
    return arguments
