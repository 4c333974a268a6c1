"""Where scorers of Inspect AI store what they decided on each criterion: there is no rule, only customs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.results.formats.marked import marked
from tasks.imports.results.formats.values import REFUSED, TRUNCATED, call_failure, decided, first_of
from tasks.imports.results.records import Decision
from tasks.llm import CONTEXT_LENGTH, PROVIDER_ERROR, TIMEOUT
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.verdict import PARSE_ERROR

_TEXTS = ("criterion", "title", "rubric_item", "rubric", "text")
_NAMES = ("criterion_id", "id", *_TEXTS)
_DECISIONS = ("criteria_met", "met", "is_met", "satisfied", "passed", "value", "verdict", "grade", "status", "score")
_DECIDED_BY = {*_DECISIONS, "error"}
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
_UNREADABLE = ("Invalid grading response format", "Could not parse grading response", "Failed to parse judge response")
_UNEXPLAINED = "No explanation provided"
_HIDING = "detailed_results"
"""Where a scorer of inspect_evals (see the README) keeps criteria: there a call without a decision is unmet."""
_BY_CRITERION = ("criteria", "verdicts", "decisions", "grades", "results", "met", "criteria_met")
"""Of several mappings of booleans, the one that these name has the decisions."""
Found = tuple[list[Decision], bool | None]


def decisions_of(score: Mapping[str, Any], sample: Mapping[str, Any]) -> Found | None:
    """The decisions in a score, and whether the scorer may hide failures (None: unknown); None if it stores none.

    They stand in a list of objects in its metadata, in a list `grades` in the order of the rubric, in the explanation
    behind marks, or by criterion, in the value or in the metadata; what stands there may also be something else.
    """
    metadata = as_mapping(score.get("metadata"))
    for name, stated in metadata.items():
        if items := _items(stated):
            may_hide = True if name == _HIDING else _may_hide(items)
            return [_decision(item) for item in items if item.get("status") not in _OPEN], may_hide
    grades = metadata.get("grades")
    if isinstance(grades, list) and grades:
        return _by_place(metadata, grades, sample), True
    if found := marked(as_text(score.get("explanation")) or "", _MARKS, "\n  ", _UNREADABLE):
        return found, True
    items = [{"criterion_id": name, **item} for name, item in _by_criterion(score, metadata).items()]
    return ([replace(_decision(item), is_guess=True) for item in items], _may_hide(items)) if items else None


def _by_criterion(score: Mapping[str, Any], metadata: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """What may be decisions by the id or text of a criterion, each as an object."""
    value = as_mapping(score.get("value"))
    if value and all(decided(each) is not None for each in value.values()):
        return {name: {"met": each} for name, each in value.items()}
    stated = {name: found for name, each in metadata.items() if (found := _flags(each) or _objects(each))}
    named = [found for name, found in stated.items() if len(stated) == 1 or name in _BY_CRITERION]
    return named[0] if len(named) == 1 else _flags({k: v for k, v in metadata.items() if isinstance(v, bool)})


def _flags(stated: Any) -> Mapping[str, Mapping[str, Any]]:
    """A mapping of decisions that are no numbers, since weights are numbers too; None is a decision that is lacking."""
    flags = {name: {"met": each} for name, each in as_mapping(stated).items()}
    known = [each["met"] for each in flags.values() if each["met"] is not None]
    return flags if known and all(isinstance(e, bool | str) and decided(e) is not None for e in known) else {}


def _objects(stated: Any) -> Mapping[str, Mapping[str, Any]]:
    """A mapping of objects with decisions."""
    objects = as_mapping(stated)
    has_decisions = all(_DECIDED_BY & as_mapping(each).keys() for each in objects.values())
    return objects if has_decisions else {}


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
    explanation = as_text(first_of(item, _EXPLANATIONS)) or ""
    is_unexplained = explanation == _UNEXPLAINED and decided(_stated(item)) == 0.0
    return is_unexplained or explanation.startswith(_UNREADABLE)


def _failure(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """The failure that an item states, with its cause: an error, or a status that is no decision."""
    status, error = as_text(item.get("status")), as_text(item.get("error"))
    is_other = not (is_blank(status) or _is_done(status) or decided(item.get("status")) is not None)
    if is_blank(error) and not is_other:
        return None
    cause = (error or "") if not is_blank(error) else f"the log's status is {status}"
    return status if status in _FAILURES else call_failure(cause) or PARSE_ERROR, cause


def _decision(item: Mapping[str, Any]) -> Decision:
    # What is asked may be an object of its own.
    asked = next((inner for name in _NAMES if (inner := as_mapping(item.get(name)))), item)
    named = (text for name in _NAMES if (text := as_text(asked.get(name))))
    stated, explanation = _stated(item), as_text(first_of(item, _EXPLANATIONS))
    value, failure = decided(stated), _failure(item)
    if failure is None and _is_unreadable(item):
        failure, explanation = (call_failure(explanation) or PARSE_ERROR, explanation or ""), None
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
