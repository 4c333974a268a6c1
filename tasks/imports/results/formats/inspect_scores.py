"""Where scorers of Inspect AI store what they decided on each criterion: there is no rule, only customs."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.results.formats.marked import marked
from tasks.imports.results.formats.values import REFUSED, TRUNCATED, decided, first_of
from tasks.imports.results.records import Decision
from tasks.llm import CONTEXT_LENGTH, PROVIDER_ERROR, TIMEOUT
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.verdict import PARSE_ERROR

_TEXTS = ("criterion", "title", "rubric_item", "rubric", "text")
_NAMES = ("criterion_id", "id", *_TEXTS)
_DECISIONS = ("criteria_met", "met", "is_met", "satisfied", "passed", "value", "verdict", "grade", "status", "score")
_EXPLANATIONS = ("explanation", "reason", "rationale")
_WEIGHTS = ("weight", "points")
_FAILURES = {PARSE_ERROR, PROVIDER_ERROR, TIMEOUT, CONTEXT_LENGTH, REFUSED, TRUNCATED}
_OPEN = {"not_judged", "no_response"}
"""What is no decision yet, in the logs that `prbench export inspect` writes."""
_DONE = {"ok", "success", "completed", "complete", "done", "scored", "graded", "judged"}
"""What a status may say beside a decision."""
_HIDES = "may_hide_failures"
_MOST_SAID = 80
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
            return [_decision(item) for item in items if item.get("status") not in _OPEN], _may_hide(items)
    if grades := as_list(metadata.get("grades")):
        return _by_place(metadata, grades, sample), True
    value = as_mapping(score.get("value"))
    if value and all(decided(each) is not None for each in value.values()):
        return [Decision(name, decided(each), is_guess=True) for name, each in value.items()], None
    found = marked(as_text(score.get("explanation")) or "", _MARKS, "\n  ", _UNREADABLE)
    return (found, True) if found else None


def _items(stated: Any) -> Sequence[Mapping[str, Any]]:
    """A list of objects that each name a criterion; some have a decision, and the others say why not, if anything."""
    items = [as_mapping(item) for item in as_list(stated)]
    is_list = all(any(name in item for name in _NAMES) for item in items)
    return items if is_list and any(name in item for item in items for name in _DECISIONS) else []


def _may_hide(items: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether a failed call may stand as a decision: known where the log has one that does, or that fails openly.

    The logs that `prbench export inspect` writes say it of every decision.
    """
    if any(_HIDES in item for item in items):
        return None
    if any(_is_unreadable(item) and decided(_stated(item)) is not None for item in items):
        return True
    return False if any(_failure(item) is not None or _says_nothing(item) for item in items) else None


def _stated(item: Mapping[str, Any]) -> Any:
    """What stands under the first key of a decision; a status may only say that there is one."""
    names = (name for name in _DECISIONS if name in item)
    return next((item[name] for name in names if name != "status" or not _is_done(item[name])), None)


def _is_done(status: Any) -> bool:
    return isinstance(status, str) and status.strip().lower() in _DONE


def _says_nothing(item: Mapping[str, Any]) -> bool:
    return any(name in item for name in _DECISIONS) and _stated(item) is None


def _is_unreadable(item: Mapping[str, Any]) -> bool:
    return (as_text(first_of(item, _EXPLANATIONS)) or "").startswith(_UNREADABLE)


def _failure(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """The failure that an item states, with its cause: an error, or a status that is no decision."""
    status, error = as_text(item.get("status")), as_text(item.get("error"))
    is_other = not (is_blank(status) or _is_done(status) or decided(item.get("status")) is not None)
    if is_blank(error) and not is_other:
        return None
    known = status if status in _FAILURES else PARSE_ERROR
    return known, (error or "") if not is_blank(error) else f"the log's status is {status}"


def _decision(item: Mapping[str, Any]) -> Decision:
    # What is asked may be an object of its own.
    asked = next((inner for name in _NAMES if (inner := as_mapping(item.get(name)))), item)
    named = (text for name in _NAMES if (text := as_text(asked.get(name))))
    stated, explanation = _stated(item), as_text(first_of(item, _EXPLANATIONS))
    value, failure = decided(stated), _failure(item)
    if failure is None and _is_unreadable(item):
        failure, explanation = (PARSE_ERROR, explanation or ""), None
    if failure is None and value is None:
        failure = PARSE_ERROR, "the log has no decision" if stated is None else _not_one(stated)
    return Decision(
        next(named, None), value if failure is None else None, status=failure[0] if failure else PARSE_ERROR,
        explanation=explanation, error=failure[1] if failure else None,
        weight=as_number(first_of({**asked, **item}, _WEIGHTS)),
        usage={_HIDES: item[_HIDES]} if isinstance(item.get(_HIDES), bool) else {},
        text=next((text for name in _TEXTS if (text := as_text(asked.get(name)))), None),
    )  # fmt: skip


def _not_one(stated: Any) -> str:
    """What is said of a value that is no decision here."""
    return f"the log has {one_line(str(stated))[:_MOST_SAID]!r}, which is neither met, partly met nor unmet"


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
