"""Several criteria in one call: the reply with an entry for each of them, and the shares of what the call used.

Each entry is read by itself. One that is missing, doubled, unknown or malformed is a `VerdictError` for its criterion
alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasks.rules.verdict import (
    DECIDED,
    MET,
    TERNARY,
    UNMET,
    VALUES,
    WORDS,
    Verdict,
    VerdictError,
    decided_verdict,
    json_text,
    object_of,
    reply_format,
    strict_format,
)

MOST_QUESTIONS = 128
"""The number of questions that LiteLLM allows in one request to a decision model."""
ENTRIES = "verdicts"
"""The key of the entries where a reply must be an object, as structured output requires."""
GROUP_REMINDER = "Reply again with only the JSON array, with one object for each criterion."
Entry = Verdict | VerdictError
"""The part of a reply about one criterion, as it was read."""
_ROUNDED = 0.05
"""The most by which rounded probabilities of the three values may miss a sum of 1."""


def group_format(explanation_chars: int | None, grading: str) -> dict[str, Any]:
    """Return the structured output to request for several criteria: a list of that for one, with a number."""
    one = reply_format(explanation_chars, grading)["json_schema"]["schema"]["properties"]
    entry = object_of({"number": {"type": "integer"}, **one})
    return strict_format(ENTRIES, {ENTRIES: {"type": "array", "items": entry}})


def _loaded(text: str) -> Any:
    """Return the value of a JSON text; NaN becomes a list, and an object with a key twice a tuple of its pairs."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | tuple[tuple[str, Any], ...]:
        return whole if len(whole := dict(pairs)) == len(pairs) else tuple(pairs)

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=lambda name: [name])
    except (ValueError, RecursionError) as error:
        raise VerdictError(f"not JSON: {error}") from error


def parse_group(reply: str, n_criteria: int, grading: str, *, omits_think_tag: bool = False) -> list[Entry]:
    """Read the verdicts on criteria 1 to `n_criteria` from a chat model's reply.

    It is one JSON array, or an object with the array under `verdicts`. An entry holds the criterion's `number`, and
    what a reply about one criterion holds (see `parse_verdict`).

    Raises:
        VerdictError: the reply as a whole is anything else.
    """
    loaded = _loaded(json_text(reply, omits_think_tag=omits_think_tag, opening="["))
    if isinstance(loaded, dict) and list(loaded) == [ENTRIES]:
        loaded = loaded[ENTRIES]
    if not isinstance(loaded, list):
        raise VerdictError(f"not a JSON array but {type(loaded).__name__}")
    # `True` and 1.0 equal 1, but neither is the number of a criterion.
    known = [(each["number"], each) for each in loaded if isinstance(each, dict) and type(each.get("number")) is int]
    return _read(known, range(1, n_criteria + 1), lambda entry: _decided(entry, grading))


def parse_only(reply: str, grading: str, *, omits_think_tag: bool = False) -> Verdict:
    """Read the verdict on the only criterion of a group, as `parse_group` does.

    Raises:
        VerdictError: there is none.
    """
    (entry,) = parse_group(reply, 1, grading, omits_think_tag=omits_think_tag)
    if isinstance(entry, VerdictError):
        raise entry
    return entry


def _read(given: Sequence[tuple[Any, Any]], wanted: Sequence[Any], read: Callable[[Any], Verdict]) -> list[Entry]:
    """Return what `read` makes of the entry of each wanted key; an error if there is not exactly one."""

    def one(key: Any) -> Entry:
        entries = [entry for name, entry in given if name == key]
        try:
            return read(*entries) if len(entries) == 1 else VerdictError(f"{len(entries)} entries {key}, not 1")
        except VerdictError as error:
            return VerdictError(f"entry {key}: {error}")

    return [one(key) for key in wanted]


def _decided(entry: Mapping[str, Any], grading: str) -> Verdict:
    if any(isinstance(value, dict | list) for value in entry.values()):
        raise VerdictError("it holds more than texts and numbers")
    return decided_verdict(entry, grading)


def questions_on(criteria: Sequence[str], grading: str) -> tuple[dict[str, Any], ...]:
    """Return the questions to a decision model, one for each text: yes or no, or (ternary) a choice of three."""
    kind: dict[str, Any] = {"type": "predicate"}
    if grading == TERNARY:
        kind = {"type": "choice", "choices": [{"value": word} for word in WORDS]}
    return tuple({**kind, "name": f"c{n}", "instructions": text} for n, text in enumerate(criteria, start=1))


def parse_decisions(reply: str, n_criteria: int, grading: str, threshold: float) -> list[Entry]:
    """Read the verdicts on criteria 1 to `n_criteria` from the `answers` of a decision model.

    They are a list (`/v1/decisions`), or a mapping by the questions' names (System One). A probability at or above
    the threshold is met; of three values the most probable one counts, of equal ones the lower.

    Raises:
        VerdictError: the reply as a whole is anything else.
    """
    content = _loaded(reply)
    decisions = content.get("answers") if isinstance(content, dict) else None
    names = [f"c{n}" for n in range(1, n_criteria + 1)]
    if isinstance(decisions, tuple):
        given = list(decisions)
    elif isinstance(decisions, dict):
        given = list(decisions.items())
    elif isinstance(decisions, list):
        own = [decision.get("name") if isinstance(decision, dict) else None for decision in decisions]
        # A provider that repeats no name gives the decisions in the order of the questions.
        has_no_names = len(decisions) == n_criteria and not any(own)
        given = list(zip(names if has_no_names else map(str, own), decisions, strict=True))
    else:
        raise VerdictError("no list or mapping `answers`")
    return _read(given, names, lambda decision: _decision(decision, grading, threshold))


def _decision(decision: Any, grading: str, threshold: float) -> Verdict:
    if not isinstance(decision, dict):
        raise VerdictError("not an object with different keys")
    if grading == TERNARY:
        given = decision.get("probabilities")
        if isinstance(given, list) and len(given) == len(WORDS):
            given = {str(each.get("value")): each.get("probability") for each in given if isinstance(each, dict)}
        if not isinstance(given, dict) or given.keys() != WORDS.keys():
            raise VerdictError("no probability of each of the three values")
        of_status = {status: _probability(given[word]) for word, status in WORDS.items()}
        if abs(sum(of_status.values()) - 1.0) > _ROUNDED:
            raise VerdictError("the three probabilities do not add up to 1")
        # `max` returns the first of equal ones, and the lowest value is the first.
        status = max(reversed(DECIDED), key=lambda each: of_status[each])
        expected = sum(VALUES[each] * probability for each, probability in of_status.items())
        return Verdict(status, VALUES[status], None, min(1.0, expected), of_status[status])
    probability = _probability(decision.get("probability", decision.get("noul")))
    status = MET if probability >= threshold else UNMET
    return Verdict(status, VALUES[status], None, probability, probability if status == MET else 1.0 - probability)


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise VerdictError("the probability is no number between 0 and 1")
    return float(value)


def shares(total: int, n_shares: int) -> list[int]:
    """Return a whole number in equal shares by largest remainder: they add up to it, and the first are the larger."""
    each, rest = divmod(total, n_shares)
    return [each + (index < rest) for index in range(n_shares)]
