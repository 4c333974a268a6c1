"""Where scorers of Inspect AI store what they decided on each criterion: there is no rule, only customs."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.results.formats.marked import marked
from tasks.imports.results.formats.values import REFUSED, TRUNCATED, decided, first_of
from tasks.imports.results.records import Decision
from tasks.llm import CONTEXT_LENGTH, PROVIDER_ERROR, TIMEOUT
from tasks.rules.verdict import PARSE_ERROR

_TEXTS = ("criterion", "title", "rubric_item", "rubric", "text")
_NAMES = ("criterion_id", "id", *_TEXTS)
_DECISIONS = ("criteria_met", "met", "is_met", "satisfied", "passed", "value", "verdict", "grade", "status", "score")
_EXPLANATIONS = ("explanation", "reason", "rationale")
_WEIGHTS = ("weight", "points")
_FAILURES = {PARSE_ERROR, PROVIDER_ERROR, TIMEOUT, CONTEXT_LENGTH, REFUSED, TRUNCATED}
_OPEN = {"not_judged", "no_response"}
"""What is no decision yet, in the logs that `prbench export inspect` writes."""
_MARKS = {"✓": 1.0, "✗": 0.0}
_UNREADABLE = ("Invalid grading response format", "Could not parse grading response")
Found = tuple[list[Decision], bool | None]


def decisions_of(score: Mapping[str, Any], sample: Mapping[str, Any]) -> Found | None:
    """The decisions in a score, and whether the scorer may hide failures (None: unknown); None if it stores none.

    They stand in a list of objects in its metadata, in a list `grades` in the order of the rubric, in the value by
    criterion, or in the explanation behind marks.
    """
    metadata = as_mapping(score.get("metadata"))
    for stated in metadata.values():
        if items := _items(stated):
            found = [_decision(item) for item in items if item.get("status") not in _OPEN]
            return found, False if any(each.value is None for each in found) else None
    if grades := as_list(metadata.get("grades")):
        return _by_place(metadata, grades, sample), True
    value = as_mapping(score.get("value"))
    if value and all(decided(each) is not None for each in value.values()):
        return [Decision(name, decided(each), is_guess=True) for name, each in value.items()], None
    found = marked(as_text(score.get("explanation")) or "", _MARKS, "\n  ", _UNREADABLE)
    return (found, True) if found else None


def _items(stated: Any) -> Sequence[Mapping[str, Any]]:
    """A list of objects that each name a criterion and a decision, or say that there is none."""
    items = [as_mapping(item) for item in as_list(stated)]
    is_list = bool(items) and all(
        any(name in item for name in _NAMES) and any(name in item for name in _DECISIONS) for item in items
    )
    return items if is_list else []


def _decision(item: Mapping[str, Any]) -> Decision:
    # What is asked may be an object of its own.
    asked = next((inner for name in _NAMES if (inner := as_mapping(item.get(name)))), item)
    value = next((v for name in _DECISIONS if (v := decided(item.get(name))) is not None), None)
    stated = as_text(item.get("status"))
    named = (text for name in _NAMES if (text := as_text(asked.get(name))))
    return Decision(
        next(named, None), None if stated in _FAILURES else value,
        status=stated if stated in _FAILURES else PARSE_ERROR,
        explanation=as_text(first_of(item, _EXPLANATIONS)),
        error=None if value is not None else as_text(item.get("error")) or "the log has no decision",
        weight=as_number(first_of({**asked, **item}, _WEIGHTS)),
        text=next((text for name in _TEXTS if (text := as_text(asked.get(name)))), None),
    )  # fmt: skip


def _by_place(metadata: Mapping[str, Any], grades: Sequence[Any], sample: Mapping[str, Any]) -> list[Decision]:
    """Grades in the order of the rubric, whose texts stand in the sample's metadata if anywhere."""
    weights = as_list(metadata.get("weights"))
    rubric = [as_mapping(item) for item in as_list(as_mapping(sample.get("metadata")).get("rubrics"))]
    return [
        Decision(
            as_text(first_of(rubric[place], _NAMES)) if len(rubric) == len(grades) else None, decided(grade), place,
            weight=as_number(weights[place]) if len(weights) == len(grades) else None,
        )
        for place, grade in enumerate(grades)
    ]  # fmt: skip
