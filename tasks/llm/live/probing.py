"""One call of one token to each of some models, which shows whether their keys are taken."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.llm.arguments import EMBEDDING
from tasks.llm.failures import Failure, Kind
from tasks.llm.ledger.entries import ADD_SPEND, Entry, spend_of
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.live.sending import send
from tasks.llm.replies import Reply
from tasks.llm.request import Call, Target
from tasks.rules.errors import PipelineError

_MOST_S = 30.0
_COSTLY = ("reasoning_effort", "thinking_budget_tokens", "web_search", "code_interpreter")
"""Parameters that could make the answer long or dear."""


@dataclass(frozen=True)
class Probed:
    """Whether a model takes calls (None: it was too busy to say), and what it said."""

    is_ok: bool | None
    detail: str


def probe(targets: Sequence[Target], ledger: Path | None, run_id: str) -> list[Probed]:
    """Call models once each, all at the same time; what that costs is added to the spend of a ledger."""
    return asyncio.run(_probe(targets, ledger, run_id))


async def _probe(targets: Sequence[Target], ledger: Path | None, run_id: str) -> list[Probed]:
    outcomes = await asyncio.gather(*map(_outcome, targets))
    spent = [
        spend_of(Entry("", 1, "", run_id, target.name, target.endpoint, "", reply, is_final=False, purpose="doctor"))
        for target, (reply, _) in zip(targets, outcomes, strict=True)
        if reply.cost_usd
    ]
    if spent and ledger is not None:
        with suppress(PipelineError):  # the checks of the warehouse say what is wrong with it
            opened = Ledger(ledger)
            try:
                await opened.write((ADD_SPEND, spent))
            finally:
                opened.close()
    return [_probed(*outcome) for outcome in outcomes]


async def _outcome(target: Target) -> tuple[Reply, Failure | None]:
    kept = {name: value for name, value in target.parameters.items() if name not in _COSTLY}
    bound = {} if kept.get("api") == EMBEDDING else {"max_tokens": 1}
    call = Call(replace(target, timeout_s=min(target.timeout_s, _MOST_S)), [{"role": "user", "content": "Hi"}], "")
    return await send(call, call.parameters(kept | bound))


def _probed(reply: Reply, failure: Failure | None) -> Probed:
    if failure is None:
        cost = "of unknown cost" if reply.cost_usd is None else f"{reply.cost_usd:.2g} USD"
        return Probed(True, f"1 call of 1 token was answered ({reply.latency_s or 0:.1f} s, {cost})")
    if failure.kind is Kind.BUSY:
        return Probed(None, f"is busy, so its key was not tried: {reply.error}")
    # A parameter that LiteLLM does not send fails every call; what the server itself says no to, it has let in.
    if failure.kind in {Kind.BAD_REQUEST, Kind.DECLINED} and "UnsupportedParams" not in failure.error:
        return Probed(True, f"takes the key, but not a call of 1 token: {reply.error}")
    return Probed(False, f"{'every call would fail' if failure.is_fatal else 'does not answer'}: {reply.error}")
