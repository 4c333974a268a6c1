"""Ends of replies: the meaning of the word with which a provider says why a reply ended.

A reply is complete if its word is in a list, or if the provider states no word. Providers keep
inventing words for failures, so these are recognised by their parts. Any other word is unknown: its
reply may be incomplete.
"""

import json
import re
from collections.abc import Collection
from enum import Enum
from typing import Any


class End(Enum):
    """The meaning of the word with which a reply ended."""

    COMPLETE = "complete"
    CUT = "cut"
    """A limit of tokens was reached."""
    FILTERED = "filtered"
    """A filter, or the model, refused the content."""
    TROUBLE = "trouble"
    """The server stopped early, or has not finished; the same request may succeed."""
    UNKNOWN = "unknown"


_COMPLETE = frozenset(
    {
        "stop",
        "stopped",
        "stop_sequence",
        "stop_sequence_reached",
        "stop_criteria_met",
        "end_turn",
        "end_of_turn",
        "eos",
        "eos_token",
        "end_of_text",
        "endoftext",
        "end_of_sequence",
        "complete",
        "completed",
        "finish",
        "finished",
        "normal",
        "succeeded",
        "stopped_eos",
        "stopped_word",
        "stop_word",
        "stop_words",
        "stop_token",
        "stop_string",
        "stop_string_found",
        "eos_found",
        "eos_id",
        "end_id",
        "eot",
    }
)
"""The words of a complete reply."""
_FAILURES = (
    (
        End.FILTERED,
        r"filter|safety|refus|guardrail|prohibit|moderat|block|sensitive|toxic|recitation|spii"
        r"|policy|flagged|armor",
    ),
    (
        End.CUT,
        r"length|max_|maximum|token_limit|tokens_limit|context|error_limit|^(?:stopped_)?limit$",
    ),
    (
        End.TROUBLE,
        r"error|abort|cancel|time_?d?_?out|time_limit|overload|insufficient|unavailable|interrupt"
        r"|disconnect|fail|crash|preempt|queued|pending|progress|running|unfinished|not_finished"
        r"|incomplete",
    ),
)
"""Meaning of a failure, and the pattern of the parts of a word that show it.

The first entry with a part in the word counts, so their order matters: `policy_error` is a filter
and `error_limit` a limit; neither is trouble.
"""
TOOL_CALLS = frozenset({"tool_calls", "tool_use", "function_call", "TOOL_CALL"})
"""Words of a reply that waits for the result of a tool. LiteLLM knows them only in this spelling,
upper case included.
"""


def end_word(stated: Any) -> str | None:
    """Return a provider's value as a word: a text as it is, another value as JSON.

    It is None if the provider stated nothing, or a blank text.
    """
    if stated is None:
        return None
    if not isinstance(stated, str):
        return json.dumps(stated)
    return stated if stated.strip() else None


def _plain_word(word: str) -> str:
    """Return a word in the form in which words are compared.

    It is in lower case, with `_` between its parts, and without a prefix such as `finish_reason_`.
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word.strip())
    joined = re.sub(r"[\s._-]+", "_", parted).lower()
    return re.sub(r"^(?:finish_|stop_)?reason_", "", joined)


def meaning_of(word: str | None) -> End:
    """Return the meaning of the word with which a reply ended; without a word it is complete."""
    if word is None:
        return End.COMPLETE
    plain = _plain_word(word)
    if plain in _COMPLETE:
        return End.COMPLETE
    for end, parts in _FAILURES:
        if re.search(parts, plain):
            return end
    return End.UNKNOWN


def is_among(word: str | None, words: Collection[str]) -> bool:
    """Return whether a word is one of some words; upper and lower case count as equal."""
    return word is not None and word.lower() in map(str.lower, words)


def end_message(word: str) -> str:
    """Return the part of an error that names the word with which a reply ended."""
    return f'ended with "{word}"'
