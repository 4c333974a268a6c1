"""The only place that talks to a model, through LiteLLM."""

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.llm import embedded
from tasks.llm.replies import EMPTY, Reply, from_completion, from_error
from tasks.rules.identity import config_hash

Messages = Sequence[Mapping[str, str]]
_BACKOFF_S, _LONGEST_BACKOFF_S = 0.5, 60.0


@dataclass(frozen=True)
class Target:
    """A model to call: its LiteLLM name, where it is served, what is sent beside the messages, and its time limit.

    `fallback` replaces parameters on the last attempt; a reply made with it is marked as degraded. `identity` holds
    what else makes the target's answers its own, and is not sent.
    """

    name: str
    api_base: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 600.0
    fallback: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether the target is the model that runs in this process."""
        return embedded.is_embedded(self.name)

    @property
    def endpoint(self) -> str:
        """Where the model is served, as far as it is part of a call's identity."""
        return embedded.weights_hash() if self.is_embedded else self.api_base or ""

    @property
    def config_hash(self) -> str:
        """Identity of the model with its endpoint and parameters."""
        return config_hash(self.name, self.endpoint, {**self.parameters, **self.identity})

    @property
    def can_follow_schema(self) -> bool:
        """Whether the model is known to support structured output."""
        return self.is_embedded or bool(_litellm().supports_response_schema(model=self.name))


class Gateway:
    """Calls to models for one run: at most `concurrency` at once, each with up to `attempts` attempts.

    `conversation_slots` bound how many conversations are judged side by side: few, so that the calls about one
    conversation follow each other while the provider has it in its cache.
    """

    def __init__(self, concurrency: int, attempts: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self.conversation_slots = asyncio.Semaphore(max(1, concurrency // 4))
        self._attempts = attempts

    async def complete(
        self, target: Target, messages: Messages, response_format: Mapping[str, Any] | None = None
    ) -> Reply:
        """One answer to one conversation. A failure is a reply too, with its status and cause."""
        reply = Reply("provider_error", error="no attempt was made")
        for attempt in range(1, self._attempts + 1):
            is_last = attempt == self._attempts and attempt > 1
            parameters = {**target.parameters, **(target.fallback if is_last else {})}
            async with self._slots:
                reply, passes, wait_s = await self._attempt(target, messages, parameters, response_format)
            reply = replace(reply, attempts=attempt, degraded=bool(is_last and target.fallback))
            if reply.status != EMPTY and not passes:
                return reply
            if attempt < self._attempts:
                await asyncio.sleep(wait_s if wait_s is not None else _backoff_s(attempt))
        return reply

    async def _attempt(
        self,
        target: Target,
        messages: Messages,
        parameters: Mapping[str, Any],
        response_format: Mapping[str, Any] | None,
    ) -> tuple[Reply, bool, float | None]:
        litellm = _litellm()
        started = time.monotonic()
        try:
            completion = await litellm.acompletion(
                messages=[dict(message) for message in messages],
                timeout=target.timeout_s,
                # Retries are made here and nowhere else; LiteLLM's own would be silent and long.
                max_retries=0,
                num_retries=0,
                **_address(target),
                **parameters,
                **({"response_format": dict(response_format)} if response_format else {}),
            )
        except Exception as error:  # noqa: BLE001 - every failure of a call becomes its state, with the cause
            reply, passes = from_error(error, time.monotonic() - started)
            return reply, passes, _retry_after_s(error)
        reply = from_completion(completion, _cost_usd(target, completion), time.monotonic() - started)
        return reply, False, None


def _address(target: Target) -> dict[str, Any]:
    if target.is_embedded:
        name = target.name.removeprefix(embedded.PREFIX)
        return {"model": f"hosted_vllm/{name}", "api_base": embedded.api_base(), "api_key": "none"}
    return {"model": target.name} | ({"api_base": target.api_base} if target.api_base else {})


def _cost_usd(target: Target, completion: Any) -> float | None:
    """The price by LiteLLM's local table; None where the table does not know the model."""
    if target.is_embedded:
        return None
    try:
        return float(_litellm().completion_cost(completion, model=target.name))
    except Exception:  # noqa: BLE001 - LiteLLM raises a bare Exception for a model that it has no price for
        return None


def _retry_after_s(error: Exception) -> float | None:
    headers = getattr(error, "litellm_response_headers", None) or {}
    stated = str(headers.get("retry-after", ""))
    return min(_LONGEST_BACKOFF_S, float(stated)) if stated.replace(".", "", 1).isdigit() else None


def _backoff_s(attempt: int) -> float:
    return float(min(_LONGEST_BACKOFF_S, _BACKOFF_S * 2 ** (attempt - 1))) * random.uniform(0.5, 1.5)


def _litellm() -> Any:
    # The price table comes with the package; without this the import asks the network for it three times.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    return litellm
