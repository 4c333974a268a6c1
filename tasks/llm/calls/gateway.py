"""Calls to models: looked up in the ledger first, stored before use, retried after temporary
failures.
"""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tasks.llm.calls.sending import NoSender, Sender, send
from tasks.llm.endpoint_health import Admission, EndpointHealth
from tasks.llm.ledger.entries import (
    ADD_SPEND,
    Entry,
    as_text,
    spend_of,
    statements_replacing,
    total_usd,
)
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Limiter, NotCalled
from tasks.llm.replies import REFUSED, Failure, Kind, LedgerKey, Reply
from tasks.llm.request import (
    DECISIONS,
    EMBEDDING,
    RESPONSES,
    Call,
    Parameters,
    Target,
    highest_usage_of,
    most_prompt_tokens,
)
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import counted

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


class _Request(NamedTuple):
    """A call with the parameters of one attempt, and its key with these parameters."""

    call: Call
    parameters: Parameters
    key: str


@dataclass(frozen=True)
class Gateway:
    """Makes calls: each reply comes from the ledger or from the model.

    The steps of an attempt are: admission by the limiter, a lock on the call among all processes,
    the call, the ledger. A reply is never returned before it is durable. For one reply it makes at
    most `attempts` attempts; the last one may have other parameters (`Target.last_resort`), and its
    reply is then degraded. Retries begin at most `deadline_s` seconds after the first attempt
    (None: no limit). Spend is recorded under `purpose`, the name of a stage
    (`tasks.run.writing.STAGES`). A gateway that `reads_only_ledger` makes no calls.
    """

    limiter: Limiter
    ledger: Ledger
    run_id: str
    attempts: int = 5
    deadline_s: float | None = None
    purpose: str = "unknown"
    sender: Sender = send
    reads_only_ledger: bool = False

    async def complete(self, call: Call) -> Reply:
        """Return the reply to a call. A failure is also a reply, with its status and cause.

        Raises:
            NotCalled: no attempt was made: the model was stopped, the budget is spent, or the time
                is up.
        """
        stored_reply, failures = await self._earlier_replies(call)
        if stored_reply is not None:
            return stored_reply
        if self.reads_only_ledger:
            raise NotCalled(
                f"{call.target.endpoint_name}: the call may have been made before, and its row was"
                " lost"
            )
        if call.is_batched and not failures:
            raise NotCalled(
                f"{call.target.endpoint_name}: the call is in a batch that has not ended yet"
            )
        if call.is_batched and not call.allows_live:
            return _summed_up(failures, len(failures))
        # Each run makes at least one attempt, even if earlier runs have made all; the stored number
        # of attempts still is at most `attempts`.
        n_tried = min(len(failures), self.attempts - 1)
        replies = await self._make_attempts(call, n_tried)
        return _summed_up([*failures, *replies], n_tried + len(replies))

    async def _make_attempts(self, call: Call, n_tried: int) -> list[Reply]:
        """Make the attempts that remain after `n_tried` earlier ones, and return their replies."""
        replies = []
        retries_end_s: float | None = None
        for number in range(n_tried + 1, self.attempts + 1):
            try:
                replies += await self._make_attempt(call, is_last=number == self.attempts)
            except NotCalled:
                if not replies:
                    raise
                break
            reply = replies[-1]
            if not reply.may_pass or number == self.attempts:
                break
            if retries_end_s is None:
                # The wait for the first attempt's turn does not count.
                first_began_s = time.monotonic() - (reply.latency_s or 0.0)
                retries_end_s = first_began_s + (self.deadline_s or math.inf)
            requested_wait_s = reply.failure.retry_after_s if reply.failure else None
            wait_s = requested_wait_s or backoff_s(number)
            if wait_s >= min(self.limiter.left_s, retries_end_s - time.monotonic()):
                break
            if not requested_wait_s:  # the limiter handles requested waits, for all calls
                await asyncio.sleep(wait_s)
        return replies

    async def _earlier_replies(self, call: Call) -> tuple[Reply | None, list[Reply]]:
        """Return the reply in the ledger or None, and the failed attempts, which the caller needs
        only if there is no reply.

        A reply with the parameters of the last resort counts only if it was made for the call's
        row (`cell`): for another row, the requested parameters have not failed yet.
        """
        history = await self.ledger.history_of(call, call.parameters())
        stored_reply = history.reply_for(call.cell)
        failures = history.failed_for(call.cell)
        last_resort = call.target.last_resort
        if stored_reply is not None or last_resort is None:
            return stored_reply, failures
        resort_history = await self.ledger.history_of(call, call.parameters(last_resort))
        reply = resort_history.reply_for(call.cell)
        is_of_cell = any(entry.cell == call.cell for entry in resort_history.counting_entries)
        if reply is None or not is_of_cell:
            return None, failures
        degraded_reply = replace(
            reply,
            degraded=True,
            cost_usd=total_usd([*failures, reply]),
            attempts=len(failures) + reply.attempts,
        )
        return degraded_reply, failures

    async def _make_attempt(self, call: Call, *, is_last: bool) -> list[Reply]:
        """Make an attempt, and repeat it if only this request was refused; return the replies."""
        last_resort = call.target.last_resort if is_last and self.attempts > 1 else None
        parameters = call.parameters(last_resort)
        request = _Request(call, parameters, call.key(parameters))
        reply = await self._locked_attempt(request)
        while reply is None:
            # Hold no admission while waiting, so that other calls of this run may start.
            await self.ledger.call_locks.wait_until_released(request.key, self.limiter.stop_at_s)
            history = await self.ledger.history_of(call, parameters)
            reply = history.reply_for(call.cell)
            if reply is None:
                reply = await self._locked_attempt(request)
        failure = reply.failure
        replies = [reply]
        endpoint = self.limiter.endpoints[call.target.endpoint_name]
        if (
            failure is not None
            and failure.request_fault is not None  # else no harmless request can be made
            and endpoint.may_refuse_all(failure)
        ):
            replies = await self._examine_refusal(request, endpoint, reply, failure)
        return [replace(reply, degraded=last_resort is not None) for reply in replies]

    async def _examine_refusal(
        self,
        request: _Request,
        endpoint: EndpointHealth,
        reply: Reply,
        failure: Failure,
    ) -> list[Reply]:
        """Find out whether an endpoint refuses all requests or only this one, by a harmless one,
        and return the replies to this request.

        - All: the endpoint is stopped, and the reply is unchanged.
        - Not known, or the cause may still be the key, the account or the model: the reply is
          unchanged, so that the next run tries again.
        - Only this one, but not for its content: the reply gets the failure `of_this_request`.
        - Only this one, for its content: the request is repeated once, and a second refusal is for
          good.
        """
        refused_s = time.monotonic()
        endpoint.count_refusal()
        async with endpoint.probe_lock:
            await endpoint.wait_for_turn(refused_s)
            if not endpoint.is_settled(refused_s):
                with suppress(NotCalled):
                    await self._call_harmless(request, endpoint, failure)
        if failure.kind is Kind.FATAL:
            await endpoint.wait_for_success(failure, refused_s)
        request_failure = failure.of_this_request
        accepts_calls = endpoint.stopped is None and endpoint.accepted_s >= refused_s
        if not accepts_calls or request_failure.kind is Kind.FATAL:
            return [reply]
        if request_failure.status != REFUSED:
            return [await self._store_other_failure(request, reply, request_failure)]
        second_reply: Reply | None = None
        with suppress(NotCalled):
            second_reply = await self._locked_attempt(request, goes_first=True)
        if second_reply is None:
            return [reply]
        second_failure = second_reply.failure
        if second_failure is not None and second_failure.kind is Kind.FATAL:
            request_failure = second_failure.of_this_request
            second_reply = await self._store_other_failure(request, second_reply, request_failure)
        return [reply, second_reply]

    async def _store_other_failure(
        self,
        request: _Request,
        reply: Reply,
        failure: Failure,
    ) -> Reply:
        """Give a stored reply another failure, and return it."""
        other_reply = replace(reply, status=failure.status, failure=failure)
        _, number = reply.ledger_keys[0]
        await self.ledger.write(*statements_replacing(self._entry(request, number, other_reply)))
        return other_reply

    async def _call_harmless(
        self,
        refused: _Request,
        endpoint: EndpointHealth,
        failure: Failure,
    ) -> None:
        """Make a harmless request like a refused one; if it is refused too, stop the endpoint."""
        target = refused.call.target
        call, parameters = harmless_call(target, refused.parameters)
        highest_usage = highest_usage_of(call, parameters)
        admission = await self.limiter.acquire(
            Admission(endpoint.name, highest_usage=highest_usage, goes_first=True)
        )
        reply: Reply | None = None
        harmless_failure: Failure | None = None
        try:
            reply = await self.sender(call, parameters)
            harmless_failure = reply.failure
            spend = spend_of(reply, self.run_id, self.purpose, target.name, time.time())
            await self.ledger.write((ADD_SPEND, [spend]))
        finally:
            self.limiter.release(admission, reply, is_lost=reply is None)
            endpoint.note_probe(admission.began_s, harmless_failure)
        # If the server finds the harmless request itself invalid (BAD_REQUEST), that stops the
        # endpoint only if it found the refused one invalid, too.
        if harmless_failure is not None and harmless_failure.kind in {Kind.FATAL, failure.kind}:
            endpoint.stop(failure, harmless_failure)

    async def _locked_attempt(self, request: _Request, *, goes_first: bool = False) -> Reply | None:
        """Make an attempt and return its reply, or one that exists by now; None if the call is
        being made elsewhere.
        """
        call = request.call
        admission = await self.limiter.acquire(
            Admission(
                endpoint=call.target.endpoint_name,
                priority=() if goes_first else call.priority,
                highest_usage=highest_usage_of(call, request.parameters),
                # A first estimate, which the reply corrects: a reply of 500 tokens, and a quarter
                # of the bound on the prompt, which takes each byte for a token; a token has about
                # four.
                likely_tokens=most_prompt_tokens(call.messages, request.parameters) // 4 + 500,
                goes_first=goes_first,
            )
        )
        # An error in other work must not end an attempt that is paid for:
        # `Ledger.wait_for_attempts` waits for it.
        return await self.ledger.run_to_end(self._admitted_attempt(request, admission))

    async def _admitted_attempt(self, request: _Request, admission: Admission) -> Reply | None:
        reply: Reply | None = None
        is_lost = False
        try:
            self.ledger.refuse_if_broken()
            with self.ledger.call_locks.holding(request.key) as is_locked:
                if not is_locked:
                    return None
                # During the wait, the same call may have been made for another cell or by another
                # process.
                history = await self.ledger.history_of(request.call, request.parameters)
                stored_reply = history.reply_for(request.call.cell)
                if stored_reply is not None:
                    return stored_reply
                # From here on the attempt may have to be paid for, even if an error ends it.
                is_lost = True
                reply = await self._send_and_record(request, history.next_attempt)
                return reply
        except NoSender:
            is_lost = False
            raise
        finally:
            self.limiter.release(admission, reply, is_lost=is_lost)

    async def _send_and_record(self, request: _Request, number: int) -> Reply:
        """Send the request and record the reply."""
        reply = await self.sender(request.call, request.parameters)
        self.limiter.n_instead_of_batch += request.call.allows_live
        await self.ledger.record(self._entry(request, number, reply))
        return replace(reply, ledger_keys=((request.key, number),))

    def _entry(self, request: _Request, number: int, reply: Reply) -> Entry:
        """Return the ledger's entry of an attempt."""
        return Entry(
            call_key=request.key,
            attempt=number,
            cell=request.call.cell,
            run_id=self.run_id,
            model=request.call.target.name,
            endpoint=request.call.target.endpoint,
            parameters=as_text(request.parameters),
            reply=reply,
            is_final=reply.is_final,
            purpose=self.purpose,
        )


def _summed_up(replies: Sequence[Reply], n_attempts: int) -> Reply:
    """Return the last reply, with the cost and the ledger keys of all replies."""
    ledger_keys: list[LedgerKey] = []
    for reply in replies:
        ledger_keys += reply.ledger_keys
    return replace(
        replies[-1],
        attempts=n_attempts,
        cost_usd=total_usd(replies),
        ledger_keys=tuple(ledger_keys),
    )


def backoff_s(attempt: int) -> float:
    """Return a wait that doubles, with jitter: calls that failed together should not be retried
    together.
    """
    doubled_s = FIRST_BACKOFF_S * 2.0 ** (attempt - 1)
    return min(60.0, doubled_s) * random.uniform(0.5, 1.5)


ProbeResult = tuple[bool | None, str]
"""True if a model accepts calls or at least the key, False if it does not, None if it was too busy
to show it; and a sentence about that.
"""


async def probe(
    targets: Sequence[Target],
    ledger_folder: Path | None,
    run_id: str,
) -> list[ProbeResult]:
    """Call each model once, all at the same time, and add the cost to the spend of a ledger."""
    calls = [
        harmless_call(target, {**target.parameters, **target.sent_along}) for target in targets
    ]
    replies = await asyncio.gather(*[send(call, parameters) for call, parameters in calls])
    results = []
    spend = []
    for target, reply in zip(targets, replies, strict=True):
        results.append(_probe_result(target, reply))
        if reply.cost_usd:
            spend.append(spend_of(reply, run_id, "doctor", target.name, time.time()))
    if spend and ledger_folder is not None:
        # Other checks report problems of the warehouse.
        with suppress(PipelineError), closing(Ledger(ledger_folder)) as ledger:
            await ledger.write((ADD_SPEND, spend))
    return results


def harmless_call(target: Target, parameters: Parameters) -> tuple[Call, dict[str, Any]]:
    """Return a short call that no content filter refuses, and the parameters to send with it: the
    given ones, except those that could make it long or expensive.
    """
    harmless_parameters = {name: value for name, value in parameters.items() if name not in _COSTLY}
    api = parameters.get("api")
    if api == DECISIONS:
        harmless_parameters["questions"] = [
            {
                "type": "predicate",
                "name": "c1",
                "instructions": "Is this a word?",
            }
        ]
    elif api != EMBEDDING:
        harmless_parameters["max_tokens"] = _harmless_tokens(parameters)
    hasty_target = replace(target, timeout_s=min(target.timeout_s, 30.0))
    return Call(hasty_target, [{"role": "user", "content": "Hi"}], ""), harmless_parameters


def _harmless_tokens(parameters: Parameters) -> int:
    """Return the lowest limit of a reply that providers accept: the responses API needs more."""
    return 16 if parameters.get("api") == RESPONSES else 1


def _probe_result(target: Target, reply: Reply) -> ProbeResult:
    probe_call = f"1 call of {counted(_harmless_tokens(target.parameters), 'token')}"
    failure = reply.failure
    if failure is None:
        cost = "of unknown cost" if reply.cost_usd is None else f"{reply.cost_usd:.2g} USD"
        return True, f"{probe_call} succeeded ({reply.latency_s or 0:.1f} s, {cost})"
    if failure.kind is Kind.BUSY:
        return None, f"{probe_call}: the key was not tried: {reply.error}"
    # If LiteLLM refuses a parameter (its error's text has the name of its exception), every call
    # fails; if the server refuses the request, it has accepted the key.
    is_of_request = failure.kind in {Kind.BAD_REQUEST, Kind.DECLINED}
    if is_of_request and "UnsupportedParams" not in failure.error:
        return True, f"{probe_call}: the key is accepted: {reply.error}"
    return False, f"{probe_call}: failed: {reply.error}"
