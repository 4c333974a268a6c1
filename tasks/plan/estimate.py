"""Estimates of the usage and cost of a number of calls, from the mean tokens of a call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.llm.request import Prices, Target, cost_usd, count_tokens
from tasks.run.writing import STAGES
from warehouse import Reader

MEASURED = "measured"
COUNTED = "counted"
ASSUMED = "assumed"
UNKNOWN = "unknown"
"""The basis of an estimate: stored calls, prompts whose tokens are counted, or assumed lengths."""
COUNTED_PROMPTS = 40
"""The number of prompts that are counted if none was measured; tokenizing all would take too long.
"""


Span = tuple[float, float]
"""The lowest and highest assumed value."""
RESPONSE_TOKENS: Span = (500, 6_000)
"""Tokens of a response with its thinking, if none was measured."""
JUDGED_TOKENS: Span = (300, 2_000)
"""Tokens of the response that a judge reads."""
VERDICT_TOKENS: Span = (50, 1_000)
"""Tokens of a judge's or an analyst's reply with its thinking."""
_CACHED_SHARE = 0.85
"""Largest cached share of a judge's prompt: the criteria of one response share all but the last
lines.
"""


Cells = Sequence[tuple[str, str, int]]
"""Model, task, and number of missing calls."""


@dataclass(frozen=True)
class Planned:
    """The calls of one model or judge: their tokens, cost in USD, basis, and unknown values.

    `cost_usd` is None if lengths were not measured; `cost_usd_low` and `cost_usd_high` then use the
    lengths that `assumed` names. Without a price all are None. `judged_before` describes the calls
    of a judge that repeat verdicts under another template, `cascade` describes which judge of which
    cascade it is. `model` is the model whose responses a judge reads.
    """

    purpose: str
    label: str
    calls: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    cost_usd_low: float | None = None
    cost_usd_high: float | None = None
    basis: str = UNKNOWN
    note: str = ""
    assumed: str = ""
    judged_before: str = ""
    cascade: str = ""
    model: str = ""


@dataclass(frozen=True)
class PerCall:
    """Mean tokens of a call; `base_prompt` are those of a judge's prompt without a response that is
    not sampled yet.

    `n_in_call` is the mean number of criteria in a call.
    """

    prompt: float | None = None
    cached: float | None = None
    completion: float | None = None
    basis: str = UNKNOWN
    base_prompt: float | None = None
    n_in_call: float = 1.0


def total_of(planned: Sequence[Planned]) -> Planned:
    """Return the total of all rows; None if a part is unknown."""
    return summed(Planned("all", "", 0, basis=""), planned)


def summed(row: Planned, planned: Sequence[Planned]) -> Planned:
    """Return a row with the sums of the calls, tokens and costs of some rows; None if a part is
    unknown.
    """
    added = (
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "cost_usd_low",
        "cost_usd_high",
    )
    parts = {name: [getattr(each, name) for each in planned] for name in added}
    sums: dict[str, Any] = {
        name: None if None in values else sum(values) for name, values in parts.items()
    }
    return replace(row, **sums)


def measured_per_call(reader: Reader, table: str, **identity: Any) -> PerCall:
    """Return the mean tokens of a configuration's stored calls; a row without tokens is not a
    call.
    """
    kinds = ("prompt", "cached", "completion")
    means = ", ".join(f"avg({kind}_tokens) filter (prompt_tokens > 0) as {kind}" for kind in kinds)
    (row,) = reader.select(table, means, **identity)
    return PerCall(**row, basis=MEASURED) if row["prompt"] is not None else PerCall()


def counted_per_call(per_call: PerCall, target: Target, prompts: Sequence[str]) -> PerCall:
    """Return the mean tokens of a call; if none were measured, count the tokens of some prompts."""
    is_known = per_call.prompt is not None or not prompts
    return (
        per_call
        if is_known
        else replace(per_call, prompt=counted_per_prompt(target, prompts), basis=COUNTED)
    )


def counted_per_prompt(target: Target, texts: Sequence[str]) -> float:
    """Return the mean tokens of some prompts; the counted ones are spread evenly over all."""
    chosen = texts[:: max(1, len(texts) // COUNTED_PROMPTS)]
    return sum(count_tokens(target, text) for text in chosen) / len(chosen)


def planned_calls(
    purpose: str,
    label: str,
    calls: int,
    per_call: PerCall,
    prices: Prices,
    most_reply: int | None = None,
) -> Planned:
    """Return the planned usage and cost (USD) of some calls, and the assumptions or missing values.

    `per_call` may lack the tokens of the prompt or the reply; `most_reply` bounds the assumed ones
    of a reply.
    """
    if calls == 0:
        return Planned(purpose, label, 0, 0, 0, 0.0, 0.0, 0.0, MEASURED)
    missing = ["its price is unknown; set its `price`"] if prices.input_usd_per_mtok is None else []
    if not STAGES[purpose].is_assumed and per_call.basis == UNKNOWN:
        missing.append("the length of its calls, because none was measured yet")
    ends, assumed = _completed(purpose, per_call, most_reply)
    cost, low, high = (cost_usd(prices, *_tokens(calls, each)) for each in (per_call, *ends))
    if low is not None and low == high:
        # A free call is free at any length.
        cost = low
        assumed = []
    prompt, _, completion = _tokens(calls, per_call)
    basis = ASSUMED if assumed else per_call.basis
    return Planned(
        purpose,
        label,
        calls,
        prompt,
        completion,
        cost,
        low,
        high,
        basis,
        "; ".join(missing),
        ", ".join(assumed),
    )


def _completed(
    purpose: str, per_call: PerCall, most_reply: int | None
) -> tuple[tuple[PerCall, PerCall], list[str]]:
    """Return the lowest and the highest mean call that the known figures allow, and the assumptions
    in words.
    """
    is_known = per_call.prompt is not None and per_call.completion is not None
    if is_known or not STAGES[purpose].is_assumed:
        return (per_call, per_call), []
    low = high = per_call
    assumed = []
    if per_call.prompt is None:
        low, high = (
            replace(per_call, prompt=(per_call.base_prompt or 0.0) + end) for end in JUDGED_TOKENS
        )
        assumed.append(f"responses of {_words(JUDGED_TOKENS)} tokens to judge")
    if per_call.completion is None:
        times, usual = (
            (1.0, RESPONSE_TOKENS) if purpose == "sample" else (per_call.n_in_call, VERDICT_TOKENS)
        )
        span = (
            min(usual[0] * times, most_reply or math.inf),
            min(usual[1] * times, most_reply or math.inf),
        )
        low = replace(low, completion=span[0])
        high = replace(high, completion=span[1])
        assumed.append(
            f"{'responses' if purpose == 'sample' else 'replies'} of {_words(span)} tokens"
        )
    if purpose != "sample" and per_call.cached is None:
        low = replace(low, cached=(low.prompt or 0.0) * _CACHED_SHARE)
        assumed.append(f"0% to {_CACHED_SHARE:.0%} of its prompts cached")
    return (low, high), assumed


def _words(span: Span) -> str:
    return f"{span[0]:,.0f} to {span[1]:,.0f}"


def _tokens(calls: int, per_call: PerCall) -> list[int | None]:
    means = (per_call.prompt, per_call.cached, per_call.completion)
    return [None if mean is None else round(calls * mean) for mean in means]
