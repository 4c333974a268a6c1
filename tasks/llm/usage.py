"""The tokens in a provider's report of usage.

Providers count differently: reasoning tokens are a part of the completion (OpenAI) or beside it
(xAI), cached tokens a part of the prompt (OpenAI) or beside it (Anthropic). The total of a report
shows which.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeGuard

JsonObject = Mapping[str, Any]
_MOST_TOKENS = 10**12
_CACHE_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_CACHE_WRITTEN = ("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")
_REASONING = ("reasoning_tokens", "thinking_tokens")
_TOOLS = ("tool_use_tokens",)
"""The names that providers give to the tokens of each kind."""
_BESIDE_INPUT = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens"})
"""Anthropic's names: the tokens of the prompt that its `input_tokens` do not include."""


class Tokens(NamedTuple):
    """The tokens of a call; None if unknown.

    The prompt includes cached tokens, the completion reasoning.

    `adds_up` is false without a total: then the figures are taken as they are. If the report adds
    up in no convention, only `largest` is known: the most tokens of prompt and completion that it
    may mean.
    """

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    adds_up: bool = False
    largest: tuple[int, int] | None = None


NO_REPORT = Tokens()


def tokens_in(report: JsonObject) -> Tokens:
    """Return the tokens in a report with the names of OpenAI's or Anthropic's APIs."""
    prompt_name, completion_name = _names_in(report)
    prompt = _plausible(report.get(prompt_name))
    completion = _plausible(report.get(completion_name))
    if not prompt:
        return NO_REPORT  # LiteLLM replaces a missing report by zeros, but every prompt has tokens
    details = [as_object(value) for name, value in report.items() if name.endswith("_details")]
    parts = [report, *details]
    cached = _stated(parts, _CACHE_READ)
    reasoning = _stated(parts, _REASONING)
    n_reasoning = reasoning or 0
    total = report.get("total_tokens")
    n_cache = (cached or 0) + (_stated(parts, _CACHE_WRITTEN) or 0)
    if completion is None or not is_count(total) or total == 0:
        is_anthropic = prompt_name == "input_tokens" and not _BESIDE_INPUT.isdisjoint(report)
        if is_anthropic:
            prompt += n_cache
        return Tokens(prompt, cached, completion, reasoning)
    n_tools = _stated(parts, _TOOLS) or 0  # Gemini's total includes them even if they are free
    # The prompt may include the cached tokens or not, and the completion the reasoning.
    for full_prompt, full_completion in product(
        (prompt, prompt + n_cache), (completion, completion + n_reasoning)
    ):
        is_possible = n_cache <= full_prompt and n_reasoning <= full_completion
        if is_possible and total - full_prompt - full_completion in {0, n_tools}:
            return Tokens(full_prompt, cached, full_completion, reasoning, adds_up=True)
    largest = (prompt + n_cache, completion + n_reasoning)
    if sum(largest) < total <= _MOST_TOKENS:  # the total has tokens that no figure names
        largest = (prompt, total - prompt)
    return Tokens(largest=largest)


def openai_form(report: JsonObject) -> dict[str, Any]:
    """Return a report with the figures that OpenAI would give; an empty one if it does not add up.

    LiteLLM prices all reports of OpenAI's form alike. A report without a total is returned as it
    is.
    """
    tokens = tokens_in(report)
    if tokens.largest is not None:
        return {}
    if tokens.prompt is None or tokens.completion is None or not tokens.adds_up:
        return dict(report)
    prompt_name, completion_name = _names_in(report)
    form = dict(report)
    form[prompt_name] = tokens.prompt
    form[completion_name] = tokens.completion
    form["total_tokens"] = tokens.prompt + tokens.completion
    if tokens.cached is not None:
        details_name = f"{prompt_name}_details"
        details = form.get(details_name) or {}
        form[details_name] = {**details, "cached_tokens": tokens.cached}
    return form


def as_object(value: Any) -> JsonObject:
    """Return a value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number; a Boolean does not count as one."""
    return isinstance(value, int) and not isinstance(value, bool)


def _names_in(report: JsonObject) -> tuple[str, str]:
    if report.get("prompt_tokens"):
        return "prompt_tokens", "completion_tokens"
    return "input_tokens", "output_tokens"


def _plausible(value: Any) -> int | None:
    return value if is_count(value) and 0 <= value <= _MOST_TOKENS else None


def _stated(parts: Sequence[JsonObject], names: Iterable[str]) -> int | None:
    """Return the figure that a report or its details give under one of the names; None if they give
    none, or different ones.
    """
    figures: set[int | None] = set()
    for part in parts:
        figures.update(_plausible(part[name]) for name in names if name in part)
    figures.discard(None)
    return figures.pop() if len(figures) == 1 else None
