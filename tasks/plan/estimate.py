"""Estimates: what a number of calls would use and cost, by the mean tokens of a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sql
from tasks.llm import Prices, Target, cost_usd, count_tokens
from warehouse import Reader

MEASURED, COUNTED, UNKNOWN = "measured", "counted", "unknown"
_COUNTED_PROMPTS = 40
"""So many prompts are counted where none was measured; tokenizing all of a night's would take longer than is useful."""


@dataclass(frozen=True)
class Planned:
    """The calls of one model or judge: tokens in all, USD, what they rest on, and what is missing to know them.

    `judged_before` says which of a judge's calls repeat verdicts that stand under another template.
    """

    role: str
    label: str
    calls: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    basis: str = UNKNOWN
    note: str = ""
    judged_before: str = ""


@dataclass(frozen=True)
class PerCall:
    """Tokens of a mean call."""

    prompt: float | None = None
    cached: float | None = None
    completion: float | None = None
    basis: str = UNKNOWN


def in_all(planned: Sequence[Planned]) -> Planned:
    """The sum; None where a part is not known."""
    return Planned(
        "all", "", sum(each.calls for each in planned), _sum([each.prompt_tokens for each in planned]),
        _sum([each.completion_tokens for each in planned]), _sum([each.cost_usd for each in planned]), basis="",
    )  # fmt: skip


def measured_per_call(reader: Reader, table: str, condition: str, identity: list[Any]) -> PerCall:
    """Mean tokens of the stored calls of a configuration; rows that another row's call answered do not count."""
    (row,) = reader.rows(sql.template("questions/plan/mean_tokens", calls=table, condition=condition), identity)
    return PerCall(**row, basis=MEASURED) if row["prompt"] is not None else PerCall()


def counted_per_prompt(target: Target, texts: Sequence[str]) -> float:
    """Mean tokens of some prompts, those counted spread evenly over all."""
    chosen = texts[:: max(1, len(texts) // _COUNTED_PROMPTS)]
    return sum(count_tokens(target, text) for text in chosen) / len(chosen)


def planned_calls(role: str, label: str, calls: int, per_call: PerCall, prices: Prices) -> Planned:
    """What some calls would use and cost (USD), and what is missing to know it."""
    if calls == 0:
        return Planned(role, label, 0, 0, 0, 0.0, MEASURED)
    missing = []
    if per_call.prompt is None:
        missing.append("there is no response to judge yet")
    if per_call.completion is None:
        missing.append("its responses have not been measured yet")
    if prices.input_usd_per_mtok is None:
        missing.append("its price is unknown")
    prompt, completion = _times(calls, per_call.prompt), _times(calls, per_call.completion)
    cost = cost_usd(prices, prompt, _times(calls, per_call.cached), completion)
    return Planned(role, label, calls, prompt, completion, cost, per_call.basis, "; ".join(missing))


def _times(calls: int, mean: float | None) -> int | None:
    return None if mean is None else round(calls * mean)


def _sum(values: Sequence[Any]) -> Any:
    return None if any(value is None for value in values) else sum(values)
