"""Calls to models: looked up in the ledger first, stored before use, retried after temporary
failures.

The first half of the module makes one attempt: from a call's parameters in LiteLLM's form to its
outcome.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.llm import embedded
from tasks.llm.environment import filled_in, filled_in_secrets
from tasks.llm.failures import failure_of, with_hints
from tasks.llm.ledger.entries import (
    ADD_SPEND,
    Entry,
    History,
    as_text,
    replaced,
    spend_of,
    total_usd,
)
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Admission, EndpointHealth, Limiter, NotCalled
from tasks.llm.litellm_setup import litellm, make_known, spare_work
from tasks.llm.reading import from_result, logprobs_in
from tasks.llm.replies import REFUSED, Failure, Kind, Reply
from tasks.llm.request import (
    DECISIONS,
    EMBEDDING,
    RESPONSES,
    Call,
    Target,
    most_of,
    most_prompt_tokens,
    prices_of,
)
from tasks.llm.transport import watched
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import counted

_OWN = frozenset({"api", "thinking_budget_tokens", "web_search", "code_interpreter", "headers"})


def chat_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return our parameters in LiteLLM's form for chat completions."""
    more: dict[str, Any] = {"web_search_options": {}} if parameters.get("web_search") else {}
    budget = parameters.get("thinking_budget_tokens")
    if budget is not None:
        more["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return arguments_of(parameters, more)


def response_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return our parameters in LiteLLM's form for the responses API."""
    more: dict[str, Any] = {}
    if "max_tokens" in parameters:
        more["max_output_tokens"] = parameters["max_tokens"]
    if "reasoning_effort" in parameters:
        more["reasoning"] = {"effort": parameters["reasoning_effort"]}
    shape = parameters.get("response_format")
    if shape:
        more["text"] = {"format": {"type": shape["type"], **shape["json_schema"]}}
    tools = list(parameters.get("tools") or ())
    if parameters.get("web_search"):
        tools.append({"type": "web_search"})
    if parameters.get("code_interpreter"):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    if tools:
        more["tools"] = tools
    return arguments_of(
        parameters, more, {"max_tokens", "reasoning_effort", "response_format", "tools"}
    )


def arguments_of(
    parameters: Mapping[str, Any], more: Mapping[str, Any], moved: Collection[str] = ()
) -> dict[str, Any]:
    """Return LiteLLM's arguments: our parameters without the `moved` ones, plus `more`, with
    secrets filled in.
    """
    sent = {
        name: value for name, value in parameters.items() if name not in _OWN and name not in moved
    }
    headers = {name: filled_in(value) for name, value in (parameters.get("headers") or {}).items()}
    return {
        **filled_in_secrets({**sent, **more}),
        **({"extra_headers": headers} if headers else {}),
    }


Sender = Callable[[Call, Mapping[str, Any]], Awaitable[Reply]]
"""Makes one attempt of a call with these parameters, and returns its outcome. It keeps no state. A
failed call is a reply and raises nothing; only `NoSender` is raised. `send` makes the attempt in
this process; limits, budget, ledger and retries belong to the gateway.
"""


class NoSender(PipelineError):
    """No process could make the attempt, so no request was sent."""


async def send(call: Call, parameters: Mapping[str, Any]) -> Reply:
    """Make one attempt. A failure is also a reply, with its status and cause; it does not raise."""
    target = call.target
    prices = prices_of(call.target)
    is_priced_by_litellm = (prices.price_table or "").startswith("litellm")
    spare_work(must_price=is_priced_by_litellm)
    started_s = time.monotonic()
    with watched() as exchange:
        try:
            async with asyncio.timeout(target.timeout_s):
                completion = await _ask(
                    target, [dict(message) for message in call.messages], parameters
                )
            if exchange.fault is not None:
                raise exchange.fault  # noqa: TRY301 - a library swallowed it as the end of a reply
            reply = from_result(parameters.get("api"), completion, exchange.body).priced(prices)
            if reply.cost_usd is not None and is_priced_by_litellm:  # LiteLLM knows tiers and fees
                stated = (getattr(completion, "_hidden_params", None) or {}).get("response_cost")
                reply = reply if stated is None else replace(reply, cost_usd=float(stated))
        except Exception as error:  # noqa: BLE001 - every failure of a call becomes a reply with the cause
            failure = with_hints(failure_of(exchange.fault or error, exchange), target)
            if (
                call.questions or parameters.get("api") == EMBEDDING
            ):  # these have no call of one token
                failure = failure._replace(alone=None)
            cause = (
                failure.error if str(error) else f"no complete reply within {target.timeout_s:g} s"
            )
            return replace(failure.reply, latency_s=time.monotonic() - started_s, error=cause)
    return replace(reply.accepted(target.ends_ok), latency_s=time.monotonic() - started_s)


async def _ask(
    target: Target, messages: list[dict[str, str]], parameters: Mapping[str, Any]
) -> Any:
    library = litellm()
    address = _address(target)
    make_known(address["model"])
    # `send` limits the time of the whole reply; LiteLLM's own limit must only not be shorter. Only
    # the gateway retries; LiteLLM's own retries would be silent and long.
    common = {
        **address,
        "timeout": target.timeout_s + 5,
        "max_retries": 0,
        "num_retries": 0,
    }
    if parameters.get("api") == RESPONSES:
        return await library.aresponses(input=messages, **common, **response_arguments(parameters))
    if parameters.get("api") == EMBEDDING:
        texts = [message["content"] for message in messages]
        return await library.aembedding(input=texts, **common, **arguments_of(parameters, {}))
    if parameters.get("api") == DECISIONS:
        if target.is_embedded:
            return await embedded.decisions(messages[0]["content"], parameters["questions"])
        return await library.adecisions(
            input=messages[0]["content"], **common, **arguments_of(parameters, {})
        )
    logprobs = {"logprobs": True} if target.wants_logprobs else {}
    arguments = {
        "messages": messages,
        **common,
        **chat_arguments(parameters),
        **logprobs,
    }
    if not target.is_streamed:
        return await library.acompletion(**arguments)
    stream = await library.acompletion(
        **arguments, stream=True, stream_options={"include_usage": True}
    )
    pieces = [piece async for piece in stream]
    has_usage = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
    whole = _joined_stream(pieces, messages, has_usage=has_usage)
    if stream.received_finish_reason is None:
        if not whole.choices or not (whole.choices[0].message.content or has_usage):
            raise ConnectionError("the stream ended before the reply did")
        whole.choices[0].finish_reason = None  # LiteLLM puts `stop` where it received no word
    return whole


def _joined_stream(pieces: list[Any], messages: list[dict[str, str]], *, has_usage: bool) -> Any:
    """Return one completion from a stream's pieces, with only the provider's values, not LiteLLM's
    own.
    """
    whole = litellm().stream_chunk_builder(pieces, messages=messages)
    if whole is None:
        raise ConnectionError("the stream ended before the reply did")
    # LiteLLM puts the requested name in every piece; the model that replied is in the hidden
    # parameters.
    names = [
        getattr(piece, "_hidden_params", {}).get("provider_response_model") for piece in pieces
    ]
    whole.model = next((name for name in names if name), None)
    # LiteLLM leaves the log-probabilities out of the completion that it builds.
    choices = [piece.choices[0] for piece in pieces if piece.choices]
    content = [
        {"token": token, "logprob": logprob} for token, logprob in logprobs_in(choices) or ()
    ]
    if content and whole.choices:
        whole.choices[0].logprobs = {"content": content}
    if not has_usage:
        whole.usage = None  # LiteLLM counts tokens itself if the provider reports none
    return whole


def _address(target: Target) -> dict[str, Any]:
    if target.is_embedded:
        name = target.name.removeprefix(embedded.PREFIX)
        return {
            "model": f"hosted_vllm/{name}",
            "api_base": embedded.api_base(),
            "api_key": embedded.API_KEY,
        }
    return {"model": target.name} | (
        {"api_base": filled_in(target.api_base)} if target.api_base else {}
    )


_COSTLY = frozenset(
    {
        "reasoning_effort",
        "thinking_budget_tokens",
        "web_search",
        "code_interpreter",
        "max_completion_tokens",
        "max_output_tokens",
    }
)
"""Parameters that could make the reply long or expensive, or that a limit of one token contradicts.
"""
FIRST_BACKOFF_S = 0.5


@dataclass(frozen=True)
class Gateway:
    """Makes calls: each reply comes from the ledger or from the model.

    The steps of an attempt are: admission by the limiter, a lock on the call among all processes,
    the call, the ledger. A reply is never returned before it is durable. For one reply it makes at
    most `attempts` attempts; retries begin only within `deadline_s` (None: no limit). Spend is
    recorded under `purpose`: sample, judge or drift. A gateway that `is_only_ledger` makes no
    calls.
    """

    limiter: Limiter
    ledger: Ledger
    run_id: str
    attempts: int = 5
    deadline_s: float | None = None
    purpose: str = "unknown"
    sender: Sender = send
    is_only_ledger: bool = False

    async def complete(self, call: Call) -> Reply:
        """Return the reply to a call. A failure is also a reply, with its status and cause.

        Raises:
            NotCalled: no attempt was made: the model was stopped, the budget is spent, or the time
                is up.
        """
        stored, failed = self._before(call)
        if stored is not None:
            return stored
        if self.is_only_ledger:
            raise NotCalled(
                f"{call.target.endpoint_name}: the call may have been made before, and its row was"
                " lost"
            )
        if call.is_batched and not failed:
            raise NotCalled(
                f"{call.target.endpoint_name}: the call is in a batch that has not ended yet"
            )
        if call.is_batched and not call.allows_live:
            return _summed_up(failed, len(failed))
        tried = min(len(failed), self.attempts - 1)
        replies = await self._attempts(call, tried)
        return _summed_up([*failed, *replies], tried + len(replies))

    async def _attempts(self, call: Call, tried: int) -> list[Reply]:
        """Make the attempts that remain after `tried` earlier ones, and return their replies."""
        replies: list[Reply] = []
        until_s = time.monotonic() + (math.inf if self.deadline_s is None else self.deadline_s)
        for number in range(tried + 1, self.attempts + 1):
            try:
                new_replies = await self._attempt(call, is_last=number == self.attempts)
            except NotCalled:
                if not replies:
                    raise
                break
            replies += new_replies
            reply = replies[-1]
            requested_s = (reply.failure and reply.failure.retry_after_s) or 0.0
            wait_s = requested_s or backoff_s(number)
            is_too_late = wait_s >= min(self.limiter.left_s, until_s - time.monotonic())
            if not reply.may_pass or number == self.attempts or is_too_late:
                break
            if not requested_s:  # the limiter handles requested waits, for all calls
                await asyncio.sleep(wait_s)
        return replies

    def history(self, call: Call, parameters: Mapping[str, Any] | None = None) -> History:
        """Return the attempts of a call that the ledger holds, with its usual parameters or
        others.
        """
        history = self.ledger.history_of(
            call, call.parameters() if parameters is None else parameters
        )
        return history.after(call.after_attempt, call.not_before_s).accepting(call.target.ends_ok)

    def _before(self, call: Call) -> tuple[Reply | None, list[Reply]]:
        """Return the reply in the ledger, if there is one, and the failed attempts.

        A reply with the parameters of the last resort counts only if it was made for this cell.
        """
        history = self.history(call)
        last_resort = call.target.last_resort
        stored = history.reply_for(call.cell)
        failed = history.failed_for(call.cell)
        if stored is None and last_resort is not None:
            resort = self.history(call, call.parameters(last_resort))
            is_own = any(entry.cell == call.cell for entry in resort.open)
            if is_own and (last := resort.reply_for(call.cell)) is not None:
                n_attempts = len(failed) + last.attempts
                stored = replace(
                    last,
                    degraded=True,
                    cost_usd=total_usd([*failed, last]),
                    attempts=n_attempts,
                )
        return stored, failed

    async def _attempt(self, call: Call, *, is_last: bool) -> list[Reply]:
        """Make an attempt, and repeat it if it was refused alone; return the replies."""
        last_resort = call.target.last_resort if is_last and self.attempts > 1 else None
        parameters = call.parameters(last_resort)
        key = call.key(parameters)
        while (reply := await self._locked_attempt(call, parameters, key)) is None:
            # Hold no admission while waiting, so that other calls of this run may start.
            await self.ledger.call_locks.released(key, self.limiter.stop_at_s)
            reply = self.history(call, parameters).reply_for(call.cell)
            if reply is not None:
                break
        failure = reply.failure
        replies = [reply]
        endpoint = self.limiter.endpoints[call.target.endpoint_name]
        if failure is not None and failure.alone is not None and endpoint.is_doubtful(failure):
            replies = await self._settled(call, parameters, reply, failure)
        return [replace(reply, degraded=last_resort is not None) for reply in replies]

    async def _settled(
        self, call: Call, parameters: Mapping[str, Any], reply: Reply, failure: Failure
    ) -> list[Reply]:
        """Return a refused reply when it is known whether the endpoint refuses a harmless request
        too.

        If it does, the endpoint is stopped. If it does not, the request is repeated, and its second
        refusal is its own. If neither is known, the next run tries again.
        """
        endpoint = self.limiter.endpoints[call.target.endpoint_name]
        refused_s = time.monotonic()
        endpoint.refused()
        async with endpoint.asking:
            await endpoint.wait_for_turn(refused_s)
            if not endpoint.is_settled(refused_s):
                with suppress(NotCalled):
                    await self._ask_harmless(call, parameters, endpoint, failure)
        if failure.kind is Kind.FATAL:
            await endpoint.wait_for_success(failure, refused_s)
        own_failure = failure.of_this_request
        is_known = endpoint.stopped is None and endpoint.accepted_s >= refused_s
        if not is_known or own_failure.kind is Kind.FATAL:
            return [reply]
        if own_failure.status != REFUSED:
            return [await self._replaced(call, parameters, reply, own_failure)]
        repeated: Reply | None = None
        with suppress(NotCalled):
            repeated = await self._locked_attempt(
                call, parameters, call.key(parameters), goes_first=True
            )
        if repeated is None:
            return [reply]
        if repeated.failure is not None and repeated.failure.kind is Kind.FATAL:
            own_failure = repeated.failure.of_this_request
            repeated = await self._replaced(call, parameters, repeated, own_failure)
        return [reply, repeated]

    async def _replaced(
        self, call: Call, parameters: Mapping[str, Any], reply: Reply, failure: Failure
    ) -> Reply:
        """Return a reply with another failure, also in the ledger."""
        other_reply = replace(reply, status=failure.status, failure=failure)
        (key, number), *_ = reply.paid
        await self.ledger.write(*replaced(self._entry(call, parameters, key, number, other_reply)))
        return other_reply

    async def _ask_harmless(
        self,
        refused: Call,
        parameters: Mapping[str, Any],
        endpoint: EndpointHealth,
        failure: Failure,
    ) -> None:
        """Make a harmless request like a refused one; if it is refused too, stop the endpoint."""
        target = refused.target
        call, harmless_parameters = harmless_call(target, parameters)
        wanted = Admission(endpoint.name, most=most_of(call, harmless_parameters), goes_first=True)
        admission = await self.limiter.acquire(wanted)
        reply: Reply | None = None
        try:
            reply = await self.sender(call, harmless_parameters)
            spend = spend_of_harmless(target, reply, self.run_id, self.purpose)
            await self.ledger.write((ADD_SPEND, [spend]))
        finally:
            self.limiter.release(admission, reply, is_lost=reply is None)
            endpoint.probed(admission.began_s, reply.failure if reply else None)
        harmless = reply.failure
        # A bad request that is harmless shows nothing, unless the other was bad, too.
        if harmless is not None and harmless.kind in {Kind.FATAL, failure.kind}:
            endpoint.stop(failure, harmless)

    async def _locked_attempt(
        self, call: Call, parameters: Mapping[str, Any], key: str, *, goes_first: bool = False
    ) -> Reply | None:
        """Make an attempt and return its reply, or one that exists by now; None if the call is
        being made elsewhere.
        """
        # A first estimate for tokens per minute, which the reply corrects: four bytes a token, and
        # a reply of 500.
        likely_tokens = most_prompt_tokens(call.messages, parameters) // 4 + 500
        wanted = Admission(
            call.target.endpoint_name,
            () if goes_first else call.priority,
            most_of(call, parameters),
            likely_tokens,
            goes_first=goes_first,
        )
        admission = await self.limiter.acquire(wanted)
        # An error in other work must not end an attempt that is paid for: `Ledger.settled` waits
        # for it.
        return await self.ledger.kept(self._admitted_attempt(call, parameters, key, admission))

    async def _admitted_attempt(
        self, call: Call, parameters: Mapping[str, Any], key: str, admission: Admission
    ) -> Reply | None:
        reply: Reply | None = None
        is_lost = False
        try:
            self.ledger.refuse_if_broken()
            with self.ledger.call_locks.holding(key) as is_locked:
                if not is_locked:
                    return None
                # During the wait, the same call may have been made for another cell or by another
                # process.
                history = self.history(call, parameters)
                stored = history.reply_for(call.cell)
                if stored is not None:
                    return stored
                is_lost = True  # unless the sender returns
                reply = await self._send_and_record(call, parameters, key, history.next_attempt)
                return reply
        except NoSender:
            is_lost = False
            raise
        finally:
            self.limiter.release(admission, reply, is_lost=is_lost)

    async def _send_and_record(
        self, call: Call, parameters: Mapping[str, Any], key: str, number: int
    ) -> Reply:
        """Send the request and record the reply."""
        reply = await self.sender(call, parameters)
        self.limiter.n_instead_of_batch += call.allows_live
        await self.ledger.record(self._entry(call, parameters, key, number, reply))
        return replace(reply, paid=((key, number),))

    def _entry(
        self, call: Call, parameters: Mapping[str, Any], key: str, number: int, reply: Reply
    ) -> Entry:
        """Return the ledger's entry of an attempt."""
        return Entry(
            call_key=key,
            attempt=number,
            cell=call.cell,
            run_id=self.run_id,
            model=call.target.name,
            endpoint=call.target.endpoint,
            parameters=as_text(parameters),
            reply=reply,
            is_final=reply.is_final,
            purpose=self.purpose,
        )


def _summed_up(replies: Sequence[Reply], n_attempts: int) -> Reply:
    """Return the last reply, with the cost and the ledger keys of all replies."""
    paid = tuple(one for each in replies for one in each.paid)
    return replace(
        replies[-1],
        attempts=n_attempts,
        cost_usd=total_usd(replies),
        paid=paid,
    )


def backoff_s(attempt: int) -> float:
    """Return a wait that doubles, with jitter: calls that failed together should not be retried
    together.
    """
    return float(min(60.0, FIRST_BACKOFF_S * 2 ** (attempt - 1))) * random.uniform(0.5, 1.5)


Probed = tuple[bool | None, str]
"""True if a model accepts calls (None: it was too busy), and a sentence about it."""


async def probe(targets: Sequence[Target], ledger: Path | None, run_id: str) -> list[Probed]:
    """Call each model once, all at the same time, and add the cost to the spend of a ledger."""
    replies = await asyncio.gather(*map(_reply_of, targets))
    spent = [
        spend_of_harmless(target, reply, run_id, "doctor")
        for target, reply in zip(targets, replies, strict=True)
        if reply.cost_usd
    ]
    if spent and ledger is not None:
        # Other checks report problems of the warehouse.
        with suppress(PipelineError), closing(Ledger(ledger)) as opened:
            await opened.write((ADD_SPEND, spent))
    return [_probed(target, reply) for target, reply in zip(targets, replies, strict=True)]


async def _reply_of(target: Target) -> Reply:
    call, parameters = harmless_call(target, {**target.parameters, **target.sent_along})
    return await send(call, parameters)


def harmless_call(target: Target, parameters: Mapping[str, Any]) -> tuple[Call, dict[str, Any]]:
    """Return the shortest call with such parameters, which no content filter refuses, and its own
    parameters.
    """
    kept = {name: value for name, value in parameters.items() if name not in _COSTLY}
    if kept.get("api") == DECISIONS:
        kept["questions"] = [
            {
                "type": "predicate",
                "name": "c1",
                "instructions": "Is this a word?",
            }
        ]
    elif kept.get("api") != EMBEDDING:
        kept["max_tokens"] = _harmless_tokens(target)
    short = replace(target, timeout_s=min(target.timeout_s, 30.0))
    return Call(short, [{"role": "user", "content": "Hi"}], ""), kept


def _harmless_tokens(target: Target) -> int:
    """Return the lowest limit of a reply that providers accept: the responses API needs more."""
    return 16 if target.parameters.get("api") == RESPONSES else 1


def spend_of_harmless(target: Target, reply: Reply, run_id: str, purpose: str) -> tuple[Any, ...]:
    """Return the spend of a harmless call, which has no entry in the ledger: it is not for any
    row.
    """
    entry = Entry(
        "", 1, "", run_id, target.name, target.endpoint, "", reply, is_final=False, purpose=purpose
    )
    return spend_of(entry)


def _probed(target: Target, reply: Reply) -> Probed:
    probe_call = f"1 call of {counted(_harmless_tokens(target), 'token')}"
    failure = reply.failure
    if failure is None:
        cost = "of unknown cost" if reply.cost_usd is None else f"{reply.cost_usd:.2g} USD"
        return True, f"{probe_call} succeeded ({reply.latency_s or 0:.1f} s, {cost})"
    if failure.kind is Kind.BUSY:
        return None, f"{probe_call}: the key was not tried: {reply.error}"
    # If LiteLLM refuses a parameter, every call fails; if the server refuses the request, it has
    # accepted the key.
    is_accepted = (
        failure.kind in {Kind.BAD_REQUEST, Kind.DECLINED}
        and "UnsupportedParams" not in failure.error
    )
    return (
        is_accepted,
        f"{probe_call}: {'the key is accepted' if is_accepted else 'failed'}: {reply.error}",
    )
