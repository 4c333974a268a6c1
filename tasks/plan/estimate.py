"""Estimates of the usage and cost of a number of calls, from the mean tokens of a call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tasks.llm.request import (
    Prices,
    Target,
    cost_usd,
    count_tokens,
    most_reply_tokens,
    requested_reply_tokens,
)
from tasks.run.writing import STAGES
from warehouse import Reader

MEASURED = "measured"
COUNTED = "counted"
ASSUMED = "assumed"
UNKNOWN = "unknown"
"""The basis of an estimate: stored calls (measured), prompts whose tokens are counted, assumed
lengths, or none.
"""
COUNTED_PROMPTS = 40
"""Without measured calls, the tokens of some prompts are counted, spread evenly over all: of all if
they are fewer than twice this number, else of at least this many. Counting all would take too long.
"""


Span = tuple[float, float]
"""The lowest and highest assumed number of tokens."""
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
"""Cells of missing work, each with its model, its task, and the number of missing calls: 1 for a
response, that of the missing verdicts for a judge.
"""


@dataclass(frozen=True)
class Planned:
    """The calls of one model or judge: their tokens, cost in USD, basis, and unknown values.

    Attributes:
        label: the label of the model or judge that is called.
        cost_usd: None if it depends on assumed lengths; `cost_usd_low` and `cost_usd_high` are its
            range with the lengths that `assumed` names. Without a price all three are None.
        note: what is unknown, and why, such as "its price is unknown; set its `price`".
        judged_before: a sentence on stored verdicts under another template, which a judge repeats,
            such as "20 verdicts were made with another template; ...".
        cascade: a judge's part in a cascade, such as "first judge of C, replies that are stored are
            free".
        model: the model whose responses a judge reads.
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

    def with_notes(self, *notes: str) -> "Planned":
        """Return these calls with further notes after their own; empty ones are left out."""
        return replace(self, note="; ".join(filter(None, (self.note, *notes))))


class PlannedWork(NamedTuple):
    """A row of the plan with its missing cells, if it is of a model."""

    planned: Planned
    cells: Cells = ()


@dataclass(frozen=True)
class PerCall:
    """Mean tokens of a call; None if unknown.

    Attributes:
        cached: those of the prompt that come from the provider's cache.
        base_prompt: those of a judge's prompt without the response, if that is not sampled yet.
        n_in_call: the mean number of criteria in a call.
    """

    prompt: float | None = None
    cached: float | None = None
    completion: float | None = None
    basis: str = UNKNOWN
    base_prompt: float | None = None
    n_in_call: float = 1.0


_SUMMED = (
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "cost_usd_low",
    "cost_usd_high",
)


def total_of(planned: Sequence[Planned]) -> Planned:
    """Return the total of all rows; a sum is None if one of its parts is unknown."""
    return summed(Planned("all", "", 0, basis=""), planned)


def summed(row: Planned, planned: Sequence[Planned]) -> Planned:
    """Return a row with the sums of some rows; a sum is None if one of its parts is unknown."""
    sums: dict[str, Any] = {}
    for name in _SUMMED:
        numbers = [getattr(part, name) for part in planned]
        sums[name] = None if None in numbers else sum(numbers)
    return replace(row, **sums)


def measured_per_call(reader: Reader, table: str, **identity: Any) -> PerCall:
    """Return the mean tokens of a configuration's stored calls.

    A row without prompt tokens is not a call.
    """
    kinds = ("prompt", "cached", "completion")
    means = ", ".join(f"avg({kind}_tokens) filter (prompt_tokens > 0) as {kind}" for kind in kinds)
    (row,) = reader.select(table, means, **identity)
    if row["prompt"] is None:
        return PerCall()
    return PerCall(**row, basis=MEASURED)


def counted_per_call(per_call: PerCall, target: Target, prompts: Sequence[str]) -> PerCall:
    """Return the mean tokens of a call; if none were measured, count the tokens of some prompts."""
    if per_call.prompt is not None or not prompts:
        return per_call
    return replace(per_call, prompt=counted_per_prompt(target, prompts), basis=COUNTED)


def counted_per_prompt(target: Target, texts: Sequence[str]) -> float:
    """Return the mean tokens of some prompts; the counted ones are spread evenly over all."""
    counted_texts = texts[:: step_of(len(texts))]
    return sum(count_tokens(target, text) for text in counted_texts) / len(counted_texts)


def step_of(n_prompts: int) -> int:
    """Return the distance between two counted prompts."""
    return max(1, n_prompts // COUNTED_PROMPTS)


def reply_limit_of(target: Target, per_call: PerCall | None = None) -> int | None:
    """Return the most tokens of a reply; None if they are not limited.

    For the calls of a judge (`per_call`), a configured limit is that of a reply on one criterion.
    """
    n_criteria = 0 if per_call is None else math.ceil(per_call.n_in_call)
    # A decision model replies with a few tokens for each question; only their number is used.
    limit = most_reply_tokens(target, {**target.parameters, "questions": range(n_criteria)})
    if n_criteria and limit and requested_reply_tokens(target.parameters):
        return limit * n_criteria
    return limit


def planned_calls(
    purpose: str,
    label: str,
    calls: int,
    per_call: PerCall,
    prices: Prices,
    reply_limit: int | None = None,
) -> Planned:
    """Return the planned usage and cost (USD) of some calls, and the assumptions or missing values.

    `per_call` may lack the tokens of the prompt or the reply; `reply_limit` bounds the assumed ones
    of a reply.
    """
    if calls == 0:
        return Planned(
            purpose,
            label,
            calls=0,
            prompt_tokens=0,
            completion_tokens=0,
            cost_usd=0.0,
            cost_usd_low=0.0,
            cost_usd_high=0.0,
            basis=MEASURED,
        )
    unknown = []
    if prices.input_usd_per_mtok is None:
        unknown.append("its price is unknown; set its `price`")
    if not STAGES[purpose].assumes_lengths and per_call.basis == UNKNOWN:
        unknown.append("the length of its calls, because none was measured yet")
    shortest, longest, assumed = _range_of(purpose, per_call, reply_limit)
    cost = _cost_usd(prices, calls, per_call)
    cost_low = _cost_usd(prices, calls, shortest)
    cost_high = _cost_usd(prices, calls, longest)
    # If two lengths have the same cost, the cost does not depend on the length. If a limit makes
    # the assumed lengths equal, this is known only of a cost of 0.
    if cost_low is not None and cost_low == cost_high and (shortest != longest or cost_high == 0.0):
        cost = cost_low
        assumed = []
    return Planned(
        purpose,
        label,
        calls,
        prompt_tokens=_tokens_of(calls, per_call.prompt),
        completion_tokens=_tokens_of(calls, per_call.completion),
        cost_usd=cost,
        cost_usd_low=cost_low,
        cost_usd_high=cost_high,
        basis=ASSUMED if assumed else per_call.basis,
        note="; ".join(unknown),
        assumed=", ".join(assumed),
    )


def _range_of(
    purpose: str,
    per_call: PerCall,
    reply_limit: int | None,
) -> tuple[PerCall, PerCall, list[str]]:
    """Return the shortest and longest mean call that the known lengths allow, and the
    assumptions.
    """
    is_known = per_call.prompt is not None and per_call.completion is not None
    if is_known or not STAGES[purpose].assumes_lengths:
        return per_call, per_call, []
    shortest = per_call
    longest = per_call
    assumed = []
    if per_call.prompt is None:
        base = per_call.base_prompt or 0.0
        shortest = replace(shortest, prompt=base + JUDGED_TOKENS[0])
        longest = replace(longest, prompt=base + JUDGED_TOKENS[1])
        assumed.append(f"responses of {_words(JUDGED_TOKENS)} tokens to judge")
    if per_call.completion is None:
        replies = "replies"
        shortest_reply, longest_reply = VERDICT_TOKENS
        if purpose == "sample":
            replies = "responses"
            shortest_reply, longest_reply = RESPONSE_TOKENS
        limit = reply_limit or math.inf
        span = (
            min(shortest_reply * per_call.n_in_call, limit),
            min(longest_reply * per_call.n_in_call, limit),
        )
        shortest = replace(shortest, completion=span[0])
        longest = replace(longest, completion=span[1])
        assumed.append(f"{replies} of {_words(span)} tokens")
    if purpose != "sample" and per_call.cached is None:
        shortest = replace(shortest, cached=(shortest.prompt or 0.0) * _CACHED_SHARE)
        assumed.append(f"0% to {_CACHED_SHARE:.0%} of its prompts cached")
    return shortest, longest, assumed


def _words(span: Span) -> str:
    return f"{span[0]:,.0f} to {span[1]:,.0f}"


def _cost_usd(prices: Prices, calls: int, per_call: PerCall) -> float | None:
    """Return the cost of some calls; None if a price or a length is unknown."""
    return cost_usd(
        prices,
        prompt_tokens=_tokens_of(calls, per_call.prompt),
        cached_tokens=_tokens_of(calls, per_call.cached),
        completion_tokens=_tokens_of(calls, per_call.completion),
    )


def _tokens_of(calls: int, mean: float | None) -> int | None:
    """Return the tokens of some calls from the mean of a call."""
    return None if mean is None else round(calls * mean)
