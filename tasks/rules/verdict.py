"""The parser of a judge's reply: exactly one JSON object with the decision, or a list of them.

A grading is `binary` (met or not) or `ternary` (partly met counts half). Anything that is not a
clear decision is a `VerdictError`. It never becomes "unmet": a failure has no value.

A list has an object for each criterion; each is read by itself. One that is missing, doubled,
unknown or malformed is a `VerdictError` for its criterion alone.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from tasks.rules.conversation import UnfinishedThinking, without_thinking
from tasks.rules.text.characters import storable

JsonObject = dict[str, Any]
MET = "met"
PARTIAL = "partial"
UNMET = "unmet"
DECIDED = (MET, PARTIAL, UNMET)
"""Statuses of decided verdicts, the highest value first."""
PARSE_ERROR = "parse_error"
BINARY = "binary"
TERNARY = "ternary"
GRADINGS = (BINARY, TERNARY)
TERNARY_AS_BINARY = "ternary_as_binary"
"""Ternary verdicts read as binary ones: partly met is not met. No judge uses this grading."""
VALUES = {
    MET: 1.0,
    PARTIAL: 0.5,
    UNMET: 0.0,
}
STATUSES = {value: status for status, value in VALUES.items()}
"""Value of a verdict -> its status."""

WORDS = {
    "satisfied": MET,
    "partially satisfied": PARTIAL,
    "not satisfied": UNMET,
}
"""The words of a ternary judge."""


class _DecisionForm(NamedTuple):
    """The key of a decision in a reply, the JSON schema of its values, and these in words."""

    key: str
    schema: JsonObject
    values: str


_DECISION_FORMS = {
    BINARY: _DecisionForm("criteria_met", {"type": "boolean"}, "true or false"),
    TERNARY: _DecisionForm(
        "verdict",
        {"type": "string", "enum": list(WORDS)},
        '"satisfied", "partially satisfied" or "not satisfied"',
    ),
}
"""Grading -> the form of its decisions."""

ENTRIES = "verdicts"
"""The key of the list of entries: structured output must be an object, not a list."""
_SPACE = " \t\r\n"
"""White space of JSON; other space characters are text."""
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL | re.IGNORECASE)


def reply_format(
    explanation_chars: int | None,
    grading: str,
    *,
    is_group: bool = False,
) -> JsonObject:
    """Return the structured output to request from a judge.

    It is an object with an explanation, of at most `explanation_chars` if given, and the decision.
    For a group it is a list of such objects, each with the number of its criterion.
    """
    explanation: JsonObject = {"type": "string"}
    if explanation_chars is not None:
        explanation["maxLength"] = explanation_chars
    form = _DECISION_FORMS[grading]
    properties = {"explanation": explanation, form.key: form.schema}
    if not is_group:
        return strict_format("verdict", properties)
    entry = object_of({"number": {"type": "integer"}, **properties})
    return strict_format(ENTRIES, {ENTRIES: {"type": "array", "items": entry}})


def strict_format(name: str, properties: Mapping[str, Any]) -> JsonObject:
    """Return a structured output with exactly these properties."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": name,
            "strict": True,
            "schema": object_of(properties),
        },
    }


def object_of(properties: Mapping[str, Any]) -> JsonObject:
    """Return the JSON schema of an object with exactly these properties, all of them required."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": list(properties),
        "additionalProperties": False,
    }


class VerdictError(ValueError):
    """A reply is not a verdict; the message gives the reason, with few characters of the reply."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decided verdict: `status` is met, partial or unmet, `value` 1, 0.5 or 0.

    `probability` is the expected value by the probabilities of a decision model: that of met, plus
    half that of partly met. `confidence` is the probability of the value that was chosen. Each is
    None where it is not known.
    """

    status: str
    value: float
    explanation: str | None = None
    probability: float | None = None
    confidence: float | None = None


def reminder(grading: str, *, is_group: bool = False) -> str:
    """Return the message that is sent once after a reply that has no verdict.

    For a group, it is sent after a reply that has no list of verdicts.
    """
    if is_group:
        return "Reply again with only the JSON array, with one object for each criterion."
    form = _DECISION_FORMS[grading]
    return (
        'Reply again with only the JSON object: {"explanation": "...",'
        f' "{form.key}": {form.values}}}.'
    )


def parse_verdict(reply: str, grading: str, *, omits_think_tag: bool = False) -> Verdict:
    """Read a verdict from a judge's reply.

    The reply is one JSON object, bare or in one Markdown fence, with the decision and an optional
    text `explanation`, no duplicate key, and nothing around it except a block of thinking before it
    (see `without_thinking`). The decision is a boolean `criteria_met` (binary), or a `verdict` that
    is one of the three words in any case (ternary), and its key occurs only once in the object.
    `omits_think_tag`, here and below, is that of `without_thinking`.

    Raises:
        VerdictError: the reply is anything else.
    """
    decision_key = _DECISION_FORMS[grading].key
    content = json_object(reply, omits_think_tag=omits_think_tag, decision_key=decision_key)
    return decided_verdict(content, grading)


def decided_verdict(content: Mapping[str, Any], grading: str) -> Verdict:
    """Return the verdict in a JSON object (see `parse_verdict`).

    Raises:
        VerdictError: it holds none.
    """
    key = _DECISION_FORMS[grading].key
    decision = content.get(key)
    status = None
    if grading == TERNARY:
        allowed = "one of the three words"
        if isinstance(decision, str):
            status = status_of(decision)
    else:
        allowed = "true or false"
        if isinstance(decision, bool):
            status = MET if decision else UNMET
    if status is None:
        raise VerdictError(f"{key} is {_type_or_missing(content, key)}, not {allowed}")
    explanation = content.get("explanation", "")
    if not isinstance(explanation, str):
        raise VerdictError(f"explanation is {_type_or_missing(content, 'explanation')}, not a text")
    return Verdict(status, VALUES[status], storable(explanation))


def status_of(word: str) -> str | None:
    """Return the status for a ternary judge's word, in any case.

    Its parts may be joined by spaces, `_` or `-`.
    """
    return WORDS.get(re.sub(r"[ _-]+", " ", word.strip().lower()))


def _refuse_constant(name: str) -> NoReturn:
    raise VerdictError(f"{name} is not JSON")


def json_object(
    reply: str,
    *,
    omits_think_tag: bool = False,
    decision_key: str | None = None,
) -> JsonObject:
    """Return the one JSON object of a reply, bare or in one Markdown fence.

    Leading thinking is removed.

    Raises:
        VerdictError: it is anything else, a key appears twice, or more than one object has the key
            of the decision.
    """
    objects: list[JsonObject] = []

    def add_object(pairs: list[tuple[str, Any]]) -> JsonObject:
        content = dict(pairs)
        if len(content) != len(pairs):
            raise VerdictError("a key appears twice")
        objects.append(content)
        return content

    text = json_text(reply, omits_think_tag=omits_think_tag)
    try:
        content = json.loads(text, object_pairs_hook=add_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # Also an error of the two hooks; and Python refuses a number with thousands of digits.
        raise VerdictError(f"not one JSON object: {error}") from error
    if not isinstance(content, dict):
        raise VerdictError(f"not a JSON object but {type(content).__name__}")
    # 0 without a `decision_key`, because no key of JSON is None.
    if sum(decision_key in inner for inner in objects) > 1:
        raise VerdictError(f"{decision_key} appears in more than one place")
    return content


def json_text(reply: str, *, omits_think_tag: bool = False, opening: str = "{") -> str:
    """Return a reply without leading thinking and without the Markdown fence around it.

    `opening` is the character with which the JSON begins.

    Raises:
        VerdictError: the thinking never ends.
    """
    # A reply that begins with JSON has no thinking, but a text in it may contain a closing tag.
    is_bare = reply.lstrip(_SPACE).startswith((opening, "{", "`"))
    if is_bare:
        omits_think_tag = False
    try:
        text = without_thinking(reply, omits_think_tag=omits_think_tag).strip(_SPACE)
    except UnfinishedThinking as error:
        raise VerdictError(str(error)) from error
    fenced = _FENCED.match(text)
    return fenced.group(1) if fenced else text


def _type_or_missing(content: Mapping[str, Any], key: str) -> str:
    return f"a {type(content[key]).__name__}" if key in content else "missing"


_BINARY_DECISION = re.compile(r'(?<!\\)"criteria_met"\s*:\s*(true|false)')
_TERNARY_DECISION = re.compile(r'(?<!\\)"verdict"\s*:\s*"([^"\\]*)"')


def confidence_of(tokens: Sequence[tuple[str, float]], grading: str) -> float | None:
    """Return the probability of the decision that the judge wrote, from 0 to 1.

    `tokens` are those of its reply, with their log-probabilities. It is the probability of the
    tokens that contain the decision: the value after the last `"criteria_met":` (binary) or the
    word after the last `"verdict":` (ternary); an escaped key is a quotation. None if there is no
    such value, or a probability is missing.
    """
    pattern = _TERNARY_DECISION if grading == TERNARY else _BINARY_DECISION
    text = "".join(token for token, _ in tokens)
    matches = list(pattern.finditer(text))
    if not matches:
        return None
    start, end = matches[-1].span(1)
    total = 0.0
    position = 0
    for token, logprob in tokens:
        if position < end and position + len(token) > start:
            total += logprob
        position += len(token)
    # A sum above 0 (but for rounding) is not one of log-probabilities.
    return math.exp(min(total, 0.0)) if math.isfinite(total) and total <= 1e-6 else None


MOST_QUESTIONS = 128
"""The number of questions that LiteLLM allows in one request to a decision model."""
VerdictOrError = Verdict | VerdictError
"""The part of a reply about one criterion, as it was read."""
_MOST_ROUNDING = 0.05
"""The most by which rounded probabilities of the three values may miss a sum of 1."""


def _load_entries(text: str) -> Any:
    """Return the value of a JSON text that has an entry for each criterion.

    What JSON does not allow must refuse only the entry that contains it, so it is kept as something
    that no valid entry contains: NaN and Infinity as a list, and an object with a duplicate key as
    a tuple of its pairs.
    """

    def object_or_pairs(pairs: list[tuple[str, Any]]) -> Any:
        content = dict(pairs)
        return content if len(content) == len(pairs) else tuple(pairs)

    try:
        return json.loads(
            text, object_pairs_hook=object_or_pairs, parse_constant=lambda name: [name]
        )
    except (ValueError, RecursionError) as error:
        raise VerdictError(f"not JSON: {error}") from error


def parse_group(
    reply: str,
    n_criteria: int,
    grading: str,
    *,
    omits_think_tag: bool = False,
) -> list[VerdictOrError]:
    """Read the verdicts on criteria 1 to `n_criteria` from a chat model's reply.

    It is one JSON array, or an object with the array under `verdicts`. An entry holds the
    criterion's `number`, and what a reply about one criterion holds (see `parse_verdict`).

    Raises:
        VerdictError: the reply as a whole is anything else.
    """
    loaded = _load_entries(json_text(reply, omits_think_tag=omits_think_tag, opening="["))
    if isinstance(loaded, dict) and list(loaded) == [ENTRIES]:
        loaded = loaded[ENTRIES]
    if not isinstance(loaded, list):
        raise VerdictError(f"not a JSON array but {type(loaded).__name__}")
    entries = []
    for entry in loaded:
        # `True` and 1.0 equal 1, but neither is the number of a criterion.
        if isinstance(entry, dict) and type(entry.get("number")) is int:
            entries.append((entry["number"], entry))
    numbers = range(1, n_criteria + 1)
    return _read_entries(entries, numbers, lambda entry: _entry_verdict(entry, grading))


def parse_group_of_one(reply: str, grading: str, *, omits_think_tag: bool = False) -> Verdict:
    """Read the verdict on the only criterion of a group, as `parse_group` does.

    Raises:
        VerdictError: there is none.
    """
    (verdict,) = parse_group(reply, 1, grading, omits_think_tag=omits_think_tag)
    if isinstance(verdict, VerdictError):
        raise verdict
    return verdict


def _read_entries(
    entries: Sequence[tuple[Any, Any]],
    keys: Sequence[Any],
    read: Callable[[Any], Verdict],
) -> list[VerdictOrError]:
    """Return, for each key, the verdict that `read` finds in its entry.

    Args:
        entries: pairs of a key and an entry.

    Returns:
        A `VerdictError` for a key without exactly one entry, or with one that `read` refuses.
    """
    verdicts: list[VerdictOrError] = []
    for key in keys:
        matches = [entry for entry_key, entry in entries if entry_key == key]
        if len(matches) != 1:
            verdicts.append(VerdictError(f"entry {key} appears {len(matches)} times, not once"))
            continue
        try:
            verdicts.append(read(matches[0]))
        except VerdictError as error:
            verdicts.append(VerdictError(f"entry {key}: {error}"))
    return verdicts


def _entry_verdict(entry: Mapping[str, Any], grading: str) -> Verdict:
    # A list may be a NaN, and a tuple an object with a duplicate key (see `_load_entries`).
    if any(isinstance(value, dict | list | tuple) for value in entry.values()):
        raise VerdictError("it holds more than texts and numbers")
    return decided_verdict(entry, grading)


def questions_on(criteria: Sequence[str], grading: str) -> tuple[JsonObject, ...]:
    """Return the questions to a decision model, one for each text.

    They ask for yes or no, or (ternary) for a choice of three.
    """
    form: JsonObject = {"type": "predicate"}
    if grading == TERNARY:
        form = {"type": "choice", "choices": [{"value": word} for word in WORDS]}
    return tuple(
        {**form, "name": f"c{number}", "instructions": text}
        for number, text in enumerate(criteria, start=1)
    )


def parse_decisions(
    reply: str,
    n_criteria: int,
    grading: str,
    threshold: float,
) -> list[VerdictOrError]:
    """Read the verdicts on criteria 1 to `n_criteria` from the `answers` of a decision model.

    They are a list (`/v1/decisions`), or a mapping by the questions' names (System One). A
    probability at or above the threshold is met; of three values the most probable one counts, of
    equal ones the lower.

    Raises:
        VerdictError: the reply as a whole is anything else.
    """
    content = _load_entries(reply)
    decisions = content.get("answers") if isinstance(content, dict) else None
    names = [f"c{number}" for number in range(1, n_criteria + 1)]
    if isinstance(decisions, tuple):  # a mapping with a duplicate key (see `_load_entries`)
        entries = list(decisions)
    elif isinstance(decisions, dict):
        entries = list(decisions.items())
    elif isinstance(decisions, list):
        entries = _named_decisions(decisions, names)
    else:
        raise VerdictError("no list or mapping `answers`")
    return _read_entries(entries, names, lambda decision: _decision(decision, grading, threshold))


def _named_decisions(decisions: list[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return decisions with their names.

    If none has a name, and there are as many as questions, they are in the order of the questions.
    Else a decision without a name (`None`) belongs to no question.
    """
    stated_names = []
    for decision in decisions:
        stated_names.append(decision.get("name") if isinstance(decision, dict) else None)
    if len(decisions) != len(names) or any(stated_names):
        names = [str(name) for name in stated_names]
    return list(zip(names, decisions, strict=True))


def _decision(decision: Any, grading: str, threshold: float) -> Verdict:
    if not isinstance(decision, dict):
        raise VerdictError("not an object, or a key appears twice")
    if grading == TERNARY:
        return _ternary_verdict(decision.get("probabilities"))
    # System One has the probability of yes under `noul`, which is also the type of such a decision.
    probability = _probability(decision.get("probability", decision.get("noul")))
    if probability >= threshold:
        return Verdict(MET, VALUES[MET], probability=probability, confidence=probability)
    return Verdict(UNMET, VALUES[UNMET], probability=probability, confidence=1.0 - probability)


def _ternary_verdict(probabilities: Any) -> Verdict:
    """Return the verdict by probabilities: a mapping by the three words, or a list of choices."""
    if isinstance(probabilities, list) and len(probabilities) == len(WORDS):
        choices = [choice for choice in probabilities if isinstance(choice, dict)]
        probabilities = {str(choice.get("value")): choice.get("probability") for choice in choices}
    if not isinstance(probabilities, dict) or probabilities.keys() != WORDS.keys():
        raise VerdictError("no probability of each of the three values")
    by_status = {status: _probability(probabilities[word]) for word, status in WORDS.items()}
    if abs(sum(by_status.values()) - 1.0) > _MOST_ROUNDING:
        raise VerdictError("the three probabilities do not add up to 1")
    # `max` returns the first of equal ones, here the lowest value.
    status = max(reversed(DECIDED), key=by_status.__getitem__)
    expected = sum(VALUES[key] * probability for key, probability in by_status.items())
    return Verdict(
        status,
        VALUES[status],
        probability=min(1.0, expected),
        confidence=by_status[status],
    )


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise VerdictError("the probability is not a number between 0 and 1")
    return float(value)
