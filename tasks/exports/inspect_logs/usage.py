"""Tokens and cost as Inspect counts them; what nobody reported is left out, never 0."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

Usage = dict[str, Any]
Row = Mapping[str, Any]
NEVER_CALLED = ("not_judged", "no_response")
"""The status of a criterion that no judge was asked about."""


def usage_of(row: Row) -> Usage | None:
    """The usage of one call, as Inspect's `ModelUsage`; None if the provider reported no tokens.

    `input_tokens` leaves out those that came from the provider's cache, which count in `input_tokens_cache_read`.
    """
    prompt, completion = row["prompt_tokens"], row["completion_tokens"]
    if prompt is None or completion is None:
        return None
    cached = row["cached_tokens"]
    return {
        "input_tokens": prompt - (cached or 0),
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_cache_read": cached,
        "reasoning_tokens": row.get("reasoning_tokens"),
        "total_cost": row["cost_usd"],
    }


def usage_of_calls(rows: Iterable[Row]) -> Usage | None:
    """The usage of several calls: tokens as far as they were reported, and what all calls cost, if that is known."""
    made = [row for row in rows if row["status"] not in NEVER_CALLED]
    usage = added(map(usage_of, made))
    return None if usage is None else usage | {"total_cost": _sum_if_known([row["cost_usd"] for row in made])}


def added(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of what was reported; None if nothing was. A cost that is not known makes the sum unknown."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: Usage = {name: sum(usage[name] for usage in known) for name in _ALWAYS_COUNTED}
    for name in _SOMETIMES_COUNTED:
        reported = [usage[name] for usage in known if usage[name] is not None]
        sums[name] = sum(reported) if reported else None
    return sums | {"total_cost": _sum_if_known([usage["total_cost"] for usage in known])}


def _sum_if_known(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return round(fsum(known), 12) if len(known) == len(costs) else None


_ALWAYS_COUNTED = ("input_tokens", "output_tokens", "total_tokens")
_SOMETIMES_COUNTED = ("input_tokens_cache_read", "reasoning_tokens")
