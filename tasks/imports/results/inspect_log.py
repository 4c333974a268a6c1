"""Logs of Inspect AI, `.eval` or JSON, read without its library (see the README)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text, cell_label, text_or_none
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results import records
from tasks.imports.results.records import Archive, Decision, Grading, Log, LoggedResponse, LogSource
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, PROVIDER_ERROR, TIMEOUT, TRUNCATED
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.text.numbers import counted
from tasks.rules.verdict import PARSE_ERROR

_TEXTS = ("criterion", "title", "rubric_item", "rubric", "text")
_NAMES = ("criterion_id", "id", *_TEXTS)
_DECISIONS = (
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
_DECIDED_BY = {*_DECISIONS, "error"}
_EXPLANATIONS = ("explanation", "reason", "rationale")
_FAILURES = records.FAILURES - {EMPTY} | {PARSE_ERROR}
_OPEN = {"not_judged", "no_response"}
"""Statuses in the logs of `prbench export inspect` that mean that there is no decision."""
_DONE = {"ok", "success", "completed", "complete", "done", "scored", "graded", "judged"}
"""Words for a status that only says that there is a decision."""
_HIDES = "may_hide_failures"
_UNREADABLE = (
    "Invalid grading response format",
    "Could not parse grading response",
    "Failed to parse judge response",
)
_BY_CRITERION = ("criteria", "verdicts", "decisions", "grades", "results", "met", "criteria_met")
"""If there are several mappings of booleans, the one with such a name has the decisions."""
Row = Mapping[str, Any]


def decisions_of(score: Row) -> tuple[list[Decision], bool | None] | None:
    """Return the decisions in a score, and whether the scorer may hide failures (None: unknown).

    The result is None if the score has no decisions. They may be a list of objects in the metadata,
    a list `grades` in the order of the rubric, marked lines in the explanation, or a mapping by
    criterion in the value or the metadata. Each of these may also hold something else.
    """
    metadata = as_mapping(score.get("metadata"))
    for name, stated in metadata.items():
        items = _items(stated)
        if items:
            # A scorer of inspect_evals writes this list, and counts a call without a decision as
            # unmet (see the README).
            may_hide = True if name == "detailed_results" else _may_hide(items)
            return [_decision(item) for item in items if item.get("status") not in _OPEN], may_hide
    grades = metadata.get("grades")
    weights = as_list(metadata.get("weights"))
    if isinstance(grades, list) and grades:
        known = weights if len(weights) == len(grades) else [None] * len(grades)
        pairs = enumerate(zip(grades, known, strict=True))
        return [
            Decision(None, records.decided(grade), n, weight=as_number(each))
            for n, (grade, each) in pairs
        ], True
    explanation = text_or_none(score.get("explanation")) or ""
    marked = records.marked(explanation, {"✓": 1.0, "✗": 0.0}, "\n  ", _UNREADABLE)
    if marked:
        return marked, True
    items = [
        {"criterion_id": name, **item} for name, item in _by_criterion(score, metadata).items()
    ]
    return (
        ([_decision(item)._replace(is_guess=True) for item in items], _may_hide(items))
        if items
        else None
    )


def _by_criterion(score: Row, metadata: Row) -> Mapping[str, Row]:
    """Return what may be decisions: the id or text of a criterion -> the decision as an object."""
    value = as_mapping(score.get("value"))
    if value and all(records.decided(each) is not None for each in value.values()):
        return {name: {"met": each} for name, each in value.items()}
    objects = {name: as_mapping(each) for name, each in metadata.items()}
    with_decisions = {
        n
        for n, of in objects.items()
        if all(_DECIDED_BY & as_mapping(e).keys() for e in of.values())
    }
    stated = {
        n: flags
        for n, of in objects.items()
        if (flags := _flags(of) or (of if n in with_decisions else {}))
    }
    named = [flags for name, flags in stated.items() if len(stated) == 1 or name in _BY_CRITERION]
    return (
        named[0]
        if len(named) == 1
        else _flags({k: v for k, v in metadata.items() if isinstance(v, bool)})
    )


def _flags(stated: Any) -> Mapping[str, Row]:
    """Return a mapping of decisions, else an empty one.

    Numbers do not count as decisions, because they may be weights; None stands for a missing
    decision.
    """
    flags = {name: {"met": each} for name, each in as_mapping(stated).items()}
    known = [each["met"] for each in flags.values() if each["met"] is not None]
    return (
        flags
        if known
        and all(isinstance(e, bool | str) and records.decided(e) is not None for e in known)
        else {}
    )


def _items(stated: Any) -> Sequence[Row]:
    """Return a list if it has objects that each name a criterion, else an empty list.

    At least one has a decision; others may state why they have none.
    """
    items = [as_mapping(item) for item in as_list(stated)]
    is_list = all(any(name in item for name in _NAMES) for item in items)
    return items if is_list and any(name in item for item in items for name in _DECISIONS) else []


def _may_hide(items: Sequence[Row]) -> bool | None:
    """Return whether a failed call may be stored as a decision.

    This is known (None if not) if the log shows a failed call: stored as a decision, or as a
    failure. In logs of `prbench export inspect` each decision states it, so the result is None.
    """
    if any(_HIDES in item for item in items):
        return None
    if any(_is_unreadable(item) and records.decided(_stated(item)) is not None for item in items):
        return True
    fails = (
        _failure(item) is not None or (item.keys() & _DECISIONS and _stated(item) is None)
        for item in items
    )
    return False if any(fails) else None


def _stated(item: Row) -> Any:
    """Return the value of the first key for decisions; a status that only says that there is one is
    skipped.
    """
    names = (name for name in _DECISIONS if name in item)
    return next(
        (item[name] for name in names if name != "status" or not _is_done(item[name])), None
    )


def _is_done(status: Any) -> bool:
    return isinstance(status, str) and status.strip().lower() in _DONE


def _is_unreadable(item: Row) -> bool:
    explanation = _explanation(item) or ""
    is_unexplained = (
        explanation == "No explanation provided" and records.decided(_stated(item)) == 0.0
    )
    return is_unexplained or explanation.startswith(_UNREADABLE)


def _explanation(item: Row) -> str | None:
    return next(
        (as_text(item[name], f"`{name}`") for name in _EXPLANATIONS if item.get(name) is not None),
        None,
    )


def _failure(item: Row) -> tuple[str, str] | None:
    """Return the failure that an item states by an error or by a status, with its cause; None if it
    states none.
    """
    status = text_or_none(item.get("status"))
    error = records.cause_of(item.get("error"))
    is_other = not (
        is_blank(status) or _is_done(status) or records.decided(item.get("status")) is not None
    )
    if is_blank(error) and not is_other:
        return None
    cause = (error or "") if not is_blank(error) else f"the log's status is {status}"
    return status if status in _FAILURES else records.call_failure(cause) or PARSE_ERROR, cause


def _decision(item: Row) -> Decision:
    # The criterion may be a separate object.
    criterion = next((inner for name in _NAMES if (inner := as_mapping(item.get(name)))), item)
    stated = _stated(item)
    explanation = _explanation(item)
    value = records.decided(stated)
    failure = _failure(item)
    stated_of = {**criterion, **item}
    if failure is None and _is_unreadable(item):
        failure = (records.call_failure(explanation) or PARSE_ERROR, explanation or "")
        explanation = None
    if failure is None and value is None:
        cause = (
            f"the log has {one_line(str(stated))[:80]!r}, which is neither met, partly met nor"
            " unmet"
        )
        failure = PARSE_ERROR, "the log has no decision" if stated is None else cause
    return Decision(
        records.first_text(criterion, _NAMES),
        value if failure is None else None,
        explanation=explanation,
        status=failure[0] if failure else PARSE_ERROR,
        error=failure[1] if failure else None,
        weight=as_number(stated_of.get("weight", stated_of.get("points"))),
        text=records.first_text(criterion, _TEXTS),
        usage={_HIDES: item[_HIDES]} if isinstance(item.get(_HIDES), bool) else {},
    )


_HEADER = "header.json"
_START = "_journal/start.json"
_SAMPLES = "samples/"
_ATTACHED = "attachment://"
_TASK_NAMES = ("task_id", "task", "prompt_id", "sample_id")
_JUDGE_NAMES = ("judge", "grader", "scorer")
_JUDGE_OPTIONS = ("judge", "judge_model", "grader_model", "grader", "scorer_model", "model")
_LIMITS = {
    "token": TRUNCATED,
    "context": CONTEXT_LENGTH,
    "time": TIMEOUT,
    "working": TIMEOUT,
}
_LABEL = "model_label"
"""The key with the label of the model in logs of `prbench export inspect`; older ones have the
label as `model`.
"""
_OURS = (records.PRIMARY, records.MIN_NORMALIZED)


def is_inspect(source: LogSource) -> bool:
    """Return whether a file is a log of Inspect."""
    if source.is_zip:
        return bool({_HEADER, _START} & set(Archive(source.path, source.content).names))
    return {"version", "eval", "status"} <= source.document.keys() and "model" in as_mapping(
        source.document["eval"]
    )


def read_inspect(source: LogSource) -> Log:
    """Return the samples.

    Raises:
        ImportRefused: the log is damaged or has no samples.
    """
    if source.is_zip:
        archive = Archive(source.path, source.content)
        header = as_mapping(archive.json(_HEADER if _HEADER in archive.names else _START))
        samples = [
            as_mapping(archive.json(name)) for name in archive.names if name.startswith(_SAMPLES)
        ]
    else:
        header = source.document
        samples = [as_mapping(sample) for sample in as_list(header.get("samples"))]
    if not samples:
        raise ImportRefused(
            f"{source.path}: the log has no samples; log them (`log_samples`) and evaluate again"
        )
    spec = as_mapping(header.get("eval"))
    valid_samples = [sample for sample in samples if not sample.get("invalidation")]
    n_invalid = len(samples) - len(valid_samples)
    if header.get("invalidated") is True and not n_invalid:
        raise ImportRefused(
            f"{source.path}: the log is invalidated, and no sample says that it is; evaluate again"
        )
    responses = [
        _response(
            f"{source.path}: sample {sample.get('id')}, epoch {sample.get('epoch')}", spec, sample
        )
        for sample in map(partial(_with_scores, header), valid_samples)
    ]
    notes = [f"{counted(n_invalid, 'invalidated sample')} left out"] if n_invalid else []
    status = text_or_none(header.get("status")) or "started"
    if status != "success":
        notes.append(f"the log's status is {status}, so it may lack samples")
    return Log("Inspect AI", responses, notes)


def _with_scores(header: Row, sample: Row) -> Row:
    """Return a sample with its scores by scorer; logs of version 1 have one scorer, which the
    results name.
    """
    score = sample.get("score")
    if sample.get("scores") or score is None:
        return sample
    scorer = as_mapping(as_mapping(header.get("results")).get("scorer"))
    return {**sample, "scores": {text_or_none(scorer.get("name")) or "": score}}


@records.located
def _response(where: str, spec: Row, sample: Row) -> LoggedResponse:
    attached = as_mapping(sample.get("attachments"))
    output = as_mapping(sample.get("output"))
    text = _with_attached(records.text_of(output), attached)
    # The error of a sample has the failed request first and the cause after it.
    error = records.cause_of(as_mapping(sample.get("error")).get("message"))
    error = error and re.split(r"\n\n|\\n\\n", error.strip())[-1]
    status, cause = records.finished(output, text, error)
    kind = text_or_none((limit := as_mapping(sample.get("limit"))).get("type"))
    if kind is not None:
        reason = text_or_none(limit.get("reason")) or f"limit of {limit.get('limit')}"
        status = _LIMITS.get(kind, PROVIDER_ERROR)
        cause = one_line(f"stopped at the {kind} limit: {reason}")
    messages = records.messages_of(sample.get("input"))
    conversation = [(role, _with_attached(content, attached) or "") for role, content in messages]
    names = {**as_mapping(sample.get("metadata")), "sample_id": sample.get("id")}
    label = text_or_none(as_mapping(spec.get("metadata")).get(_LABEL)) or cell_label(spec, "model")
    return LoggedResponse(
        where,
        label,
        records.first_text(names, _TASK_NAMES),
        text,
        status=status,
        error=cause,
        trial=number_of(where, sample, "epoch"),
        messages=conversation,
        usage=records.usage_of(output, prompt_lacks_cached=True),
        gradings=list(_gradings(spec, sample)),
    )


def _with_attached(text: str | None, attached: Row) -> str | None:
    """Return a text; if it refers to an attachment, the text of that."""
    if text is None or not text.startswith(_ATTACHED):
        return text
    return text_or_none(attached.get(text.removeprefix(_ATTACHED))) or text


def _gradings(spec: Row, sample: Row) -> Iterator[Grading]:
    """Yield a grading for each score with decisions; if no score has any, one grading without
    decisions.
    """
    scores = {name: as_mapping(score) for name, score in as_mapping(sample.get("scores")).items()}
    by_scorer = {name: decisions_of(score) for name, score in scores.items()}
    with_decisions = {name: of for name, of in by_scorer.items() if of is not None}
    certain = {
        name
        for name, (decisions, _) in with_decisions.items()
        if not any(each.is_guess for each in decisions)
    }
    for name, (decisions, may_hide) in with_decisions.items():
        value = scores[name].get("value")
        judge = text_or_none(as_mapping(scores[name].get("metadata")).get("judge")) or _judge_of(
            spec, sample, name
        )
        # Two scorers with the same judge count as two judges, because their prompts may differ.
        is_only = len(with_decisions) == 1 or certain == {name}
        label = judge if is_only else f"{judge} ({name})" if judge else name
        stated = {records.PRIMARY: value} | {
            other: scores[other].get("value") for other in _OURS if other in scores
        }
        # Of several values, use those with the names of our scores, else the only one whose name
        # ends with `_score`.
        inner = as_mapping(value)
        called = [each for known, each in inner.items() if known.endswith("_score")]
        ours = {known: inner[known] for known in _OURS if known in inner}
        stated |= ours or ({records.PRIMARY: called[0]} if len(called) == 1 else {})
        own = {
            known: number
            for known, each in stated.items()
            if (number := as_number(each)) is not None
        }
        yield Grading(label, decisions, may_hide_failures=may_hide, own_scores=own)
    if scores and not with_decisions:
        yield Grading(None, ())


def _judge_of(spec: Row, sample: Row, scorer: str) -> str | None:
    """Return the judge's model.

    The log's metadata, a role, or an option of the scorer names it; or it is the only other model
    in the sample.
    """
    models = as_mapping(spec.get("model_roles"))
    stated = {name: as_mapping(models.get(name)).get("model") for name in _JUDGE_NAMES}
    stated[""] = as_mapping(spec.get("metadata")).get("judge")
    named = records.first_text(stated, ("", *_JUDGE_NAMES))
    if named:
        return named
    for each in map(as_mapping, as_list(spec.get("scorers"))):
        named = records.first_text(as_mapping(each.get("options")), _JUDGE_OPTIONS)
        if each.get("name") == scorer and named:
            return named
    others = set(as_mapping(sample.get("model_usage"))) - {text_or_none(spec.get("model"))}
    return others.pop() if len(others) == 1 else None
