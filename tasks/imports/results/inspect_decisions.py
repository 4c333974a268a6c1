"""The decisions on criteria in a score of an Inspect log, in the forms that scorers write them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text, text_or_none
from tasks.imports.results.records import (
    FAILURES,
    Decision,
    LogRow,
    call_failure,
    cause_of,
    first_text,
    marked_decisions,
    value_of_decision,
)
from tasks.llm.replies import EMPTY
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.verdict import PARSE_ERROR

_TEXT_KEYS = ("criterion", "title", "rubric_item", "rubric", "text")
"""Keys that may have a criterion's text."""
_NAME_KEYS = ("criterion_id", "id", *_TEXT_KEYS)
"""Keys that may have a criterion's id or text."""
_DECISION_KEYS = (
    "criteria_met",
    "met",
    "is_met",
    "satisfied",
    "passed",
    "value",
    "verdict",
    "grade",
    "status",
    "score",
)
_DECISION_OR_ERROR_KEYS = {*_DECISION_KEYS, "error"}
_EXPLANATION_KEYS = ("explanation", "reason", "rationale")
# An empty reply of a judge is a parse error (`tasks.run.calls`).
_FAILURE_STATUSES = (FAILURES - {EMPTY}) | {PARSE_ERROR}
_DECIDED_WORDS = {"ok", "success", "completed", "complete", "done", "scored", "graded", "judged"}
"""Words for a status that only says that there is a decision."""
_MAY_HIDE_FAILURES = "may_hide_failures"
_UNREADABLE_REPLY = (
    "Invalid grading response format",
    "Could not parse grading response",
    "Failed to parse judge response",
)
"""Beginnings of explanations that state that the judge's reply could not be read."""
_MAPPING_KEYS = ("criteria", "verdicts", "decisions", "grades", "results", "met", "criteria_met")
"""If several mappings may be decisions by criterion, only the one with such a name is."""


class ScoreDecisions(NamedTuple):
    """The decisions in a score; `may_hide_failures` is None if unknown."""

    decisions: Sequence[Decision]
    may_hide_failures: bool | None


def decisions_of(score: LogRow) -> ScoreDecisions | None:
    """Return the decisions in a score; None if it has none.

    They may be objects in the metadata, a list `grades` in the order of the rubric, marked lines in
    the explanation, or a mapping by criterion in the value or the metadata. Each of these may also
    hold something else.
    """
    metadata = as_mapping(score.get("metadata"))
    for name, stated in metadata.items():
        items = _items(stated)
        if items:
            # In logs of `prbench export inspect`, these statuses mean that there is no decision.
            decisions = [
                _decision(item)
                for item in items
                if text_or_none(item.get("status")) not in {"not_judged", "no_response"}
            ]
            # A scorer of inspect_evals writes this list, and counts a call without a decision as
            # unmet (see the README).
            may_hide = True if name == "detailed_results" else _may_hide(items)
            return ScoreDecisions(decisions, may_hide)
    grades = metadata.get("grades")
    if isinstance(grades, list) and grades:
        return ScoreDecisions(_decisions_in_order(grades, metadata), may_hide_failures=True)
    explanation = text_or_none(score.get("explanation")) or ""
    decisions = marked_decisions(explanation, {"✓": 1.0, "✗": 0.0}, "\n  ", _UNREADABLE_REPLY)
    if decisions:
        return ScoreDecisions(decisions, may_hide_failures=True)
    items = [
        {"criterion_id": name, **item} for name, item in _by_criterion(score, metadata).items()
    ]
    if not items:
        return None
    decisions = [_decision(item)._replace(is_guess=True) for item in items]
    return ScoreDecisions(decisions, _may_hide(items))


def _decisions_in_order(grades: Sequence[Any], metadata: LogRow) -> list[Decision]:
    weights = as_list(metadata.get("weights"))
    if len(weights) != len(grades):
        weights = [None] * len(grades)
    decisions = []
    for position, (grade, weight) in enumerate(zip(grades, weights, strict=True)):
        value = value_of_decision(grade)
        decisions.append(Decision(None, value, position, weight=as_number(weight)))
    return decisions


def _by_criterion(score: LogRow, metadata: LogRow) -> Mapping[str, LogRow]:
    """Return what may be decisions: the id or text of a criterion -> the decision as an object."""
    value = as_mapping(score.get("value"))
    if value and all(_is_decision(stated) for stated in value.values()):
        return {name: {"met": stated} for name, stated in value.items()}
    mappings = {}
    for name, stated in metadata.items():
        decisions = _decisions_in_mapping(as_mapping(stated))
        if decisions:
            mappings[name] = decisions
    if len(mappings) > 1:
        mappings = {name: mappings[name] for name in mappings if name in _MAPPING_KEYS}
    if len(mappings) == 1:
        return mappings.popitem()[1]
    return _flags({name: flag for name, flag in metadata.items() if isinstance(flag, bool)})


def _decisions_in_mapping(stated: LogRow) -> Mapping[str, LogRow]:
    """Return a mapping by criterion: of booleans or words, or of objects with a decision each."""
    flags = _flags(stated)
    if flags:
        return flags
    items = [as_mapping(item) for item in stated.values()]
    have_decisions = all(_DECISION_OR_ERROR_KEYS & item.keys() for item in items)
    return stated if have_decisions else {}


def _flags(stated: LogRow) -> Mapping[str, LogRow]:
    """Return decisions that are booleans or words as objects, by name.

    The mapping is empty if any value is something else, or if there is no decision. Numbers do not
    count as decisions, because they may be weights; None stands for a missing decision.
    """
    decisions = [decision for decision in stated.values() if decision is not None]
    are_decisions = all(
        isinstance(decision, bool | str) and _is_decision(decision) for decision in decisions
    )
    if not decisions or not are_decisions:
        return {}
    return {name: {"met": decision} for name, decision in stated.items()}


def _is_decision(stated: Any) -> bool:
    return value_of_decision(stated) is not None


def _items(stated: Any) -> Sequence[LogRow]:
    """Return a list of objects (or a single one) that each name a criterion; anything else is
    empty.

    At least one has a decision; others may state why they have none.
    """
    items = [as_mapping(item) for item in as_list(stated)]
    if any(item.keys().isdisjoint(_NAME_KEYS) for item in items):
        return []
    has_decision = any(not item.keys().isdisjoint(_DECISION_KEYS) for item in items)
    return items if has_decision else []


def _may_hide(items: Sequence[LogRow]) -> bool | None:
    """Return whether a failed call may be stored as a decision.

    True if the log shows a failed call that is stored as a decision; False if it shows only those
    that are stored as failures; None if it shows none, so that this is not known. In logs of
    `prbench export inspect` each decision states it (`Decision.usage`), so the result is None.
    """
    if any(_MAY_HIDE_FAILURES in item for item in items):
        return None
    if any(_is_unreadable(item) and _is_decision(_stated_decision(item)) for item in items):
        return True
    return False if any(map(_shows_failure, items)) else None


def _shows_failure(item: LogRow) -> bool:
    """Return whether an item has a key for a decision but no decision, or states a failure."""
    lacks_decision = _stated_decision(item) is None and not item.keys().isdisjoint(_DECISION_KEYS)
    return lacks_decision or _failure_of(item) is not None


def _stated_decision(item: LogRow) -> Any:
    """Return the value of the first key for decisions.

    A status that only says that there is a decision is skipped.
    """
    for name in _DECISION_KEYS:
        if name in item and not (name == "status" and _is_done(item[name])):
            return item[name]
    return None


def _is_done(status: Any) -> bool:
    return isinstance(status, str) and status.strip().lower() in _DECIDED_WORDS


def _is_unreadable(item: LogRow) -> bool:
    explanation = _explanation(item) or ""
    if explanation == "No explanation provided":
        # Of an unmet criterion, this states that the reply could not be read.
        return value_of_decision(_stated_decision(item)) == 0.0
    return explanation.startswith(_UNREADABLE_REPLY)


def _explanation(item: LogRow) -> str | None:
    for name in _EXPLANATION_KEYS:
        if item.get(name) is not None:
            return as_text(item[name], f"`{name}`")
    return None


class _Failure(NamedTuple):
    """Why there is no decision."""

    status: str
    cause: str


def _failure_of(item: LogRow) -> _Failure | None:
    """Return the failure that an item states by an error or by a status; None if it states none."""
    status = text_or_none(item.get("status"))
    cause = cause_of(item.get("error")) or ""
    if is_blank(cause):
        if is_blank(status) or _is_done(status) or _is_decision(item.get("status")):
            return None
        cause = f"the log's status is {status}"
    if status in _FAILURE_STATUSES:
        return _Failure(status, cause)
    return _Failure(call_failure(cause) or PARSE_ERROR, cause)


def _decision(item: LogRow) -> Decision:
    # The criterion may be a separate object.
    objects = (as_mapping(item.get(name)) for name in _NAME_KEYS)
    criterion = next(filter(None, objects), item)
    stated = _stated_decision(item)
    value = value_of_decision(stated)
    explanation = _explanation(item)
    failure = _failure_of(item)
    if failure is None:
        if _is_unreadable(item):
            failure = _Failure(call_failure(explanation) or PARSE_ERROR, explanation or "")
            explanation = None
        elif stated is None:
            failure = _Failure(PARSE_ERROR, "the log has no decision")
        elif value is None:
            stated_text = repr(one_line(str(stated))[:80])
            failure = _Failure(
                PARSE_ERROR,
                f"the log has {stated_text}, which is neither met, partly met nor unmet",
            )
    columns = {**criterion, **item}
    usage = {}
    if isinstance(item.get(_MAY_HIDE_FAILURES), bool):
        usage[_MAY_HIDE_FAILURES] = item[_MAY_HIDE_FAILURES]
    decision = Decision(
        first_text(criterion, _NAME_KEYS),
        value,
        explanation=explanation,
        weight=as_number(columns.get("weight", columns.get("points"))),
        text=first_text(criterion, _TEXT_KEYS),
        usage=usage,
    )
    if failure is None:
        return decision
    return decision._replace(value=None, status=failure.status, error=failure.cause)
