"""Logs of Inspect AI, `.eval` or JSON, read without its library (see the README)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results.formats.inspect_scores import decisions_of
from tasks.imports.results.formats.values import TRUNCATED, finished, first_of, messages_of, text_of, usage_of
from tasks.imports.results.records import MIN_NORMALIZED, PRIMARY, Answer, Grading, Log, Mean
from tasks.imports.results.sources import Archive, Source
from tasks.llm import CONTEXT_LENGTH, PROVIDER_ERROR, TIMEOUT
from tasks.rules.text.characters import one_line

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_ATTACHED = "attachment://"
_JUDGE_ROLES = ("judge", "grader", "scorer")
_JUDGE_OPTIONS = ("judge", "judge_model", "grader_model", "grader", "scorer_model", "model")
_LIMITS = {"token": TRUNCATED, "context": CONTEXT_LENGTH, "time": TIMEOUT, "working": TIMEOUT}
_OURS, _SCORE = (PRIMARY, MIN_NORMALIZED), "_score"
_MEANS = ("mean", "accuracy")
"""Metrics of Inspect that are the mean over tasks, where a score is a number."""
Made = Mapping[str, Any]


def is_of(source: Source) -> bool:
    """Whether a file is a log."""
    if source.is_zip:
        names = set(Archive(source.path, source.content).names)
        return bool({_HEADER, _START} & names)
    return {"version", "eval", "status"} <= source.document.keys() and "model" in as_mapping(source.document["eval"])


def read(source: Source) -> Log:
    """Its samples.

    Raises:
        ImportRefused: the log is damaged or holds no samples.
    """
    if source.is_zip:
        archive = Archive(source.path, source.content)
        header = as_mapping(archive.json(_HEADER if _HEADER in archive.names else _START))
        samples = [as_mapping(archive.json(name)) for name in archive.names if name.startswith(_SAMPLES)]
    else:
        header = source.document
        samples = [as_mapping(sample) for sample in as_list(header.get("samples"))]
    if not samples:
        raise ImportRefused(f"{source.path}: the log has no samples; log them (`log_samples`) and evaluate again")
    spec = as_mapping(header.get("eval"))
    answers = [_answer(f"{source.path}: sample {s.get('id')}, epoch {s.get('epoch')}", spec, s) for s in samples]
    status = as_text(header.get("status")) or "started"
    notes = [] if status == "success" else [f"the log's status is {status}, so it may lack samples"]
    return Log("Inspect AI", answers, list(_means(header, spec, answers)), notes)


def _answer(where: str, spec: Made, sample: Made) -> Answer:
    attached = as_mapping(sample.get("attachments"))
    output = as_mapping(sample.get("output"))
    text = _with_attached(text_of(output), attached)
    status, cause = _limited(sample) or finished(output, text, _cause_of(sample))
    given = sample.get("input")
    asked = [(role, _with_attached(content, attached) or "") for role, content in messages_of(given)]
    return Answer(
        where, as_text(spec.get("model")), _task_of(sample), text, status=status, error=cause,
        trial=number_of(where, sample, "epoch"), messages=asked,
        usage=usage_of(output, prompt_lacks_cached=True), gradings=list(_gradings(spec, sample)),
    )  # fmt: skip


def _cause_of(sample: Made) -> str | None:
    """The cause of a sample's error, which stands behind the request that failed."""
    message = as_text(as_mapping(sample.get("error")).get("message"))
    return None if message is None else re.split(r"\n\n|\\n\\n", message.strip())[-1]


def _limited(sample: Made) -> tuple[str, str] | None:
    """The failure of a sample that was stopped at a limit, with the log's words on it."""
    limit = as_mapping(sample.get("limit"))
    if (kind := as_text(limit.get("type"))) is None:
        return None
    said = as_text(limit.get("reason")) or f"limit of {limit.get('limit')}"
    return _LIMITS.get(kind, PROVIDER_ERROR), one_line(f"stopped at the {kind} limit: {said}")


def _with_attached(text: str | None, attached: Made) -> str | None:
    """A text, from the attachments where it was moved there."""
    if text is None or not text.startswith(_ATTACHED):
        return text
    return as_text(attached.get(text.removeprefix(_ATTACHED))) or text


def _task_of(sample: Made) -> str | None:
    metadata = as_mapping(sample.get("metadata"))
    named = (metadata.get("task_id"), metadata.get("task"), metadata.get("prompt_id"), sample.get("id"))
    return next((text for text in map(as_text, named) if text), None)


def _gradings(spec: Made, sample: Made) -> Iterator[Grading]:
    """The scores that store criteria, each as the decisions of a judge; one without decisions if none does."""
    scores = {name: as_mapping(score) for name, score in as_mapping(sample.get("scores")).items()}
    by_scorer = {name: decisions_of(score, sample) for name, score in scores.items()}
    found = {name: of for name, of in by_scorer.items() if of is not None}
    certain = {name for name, (decisions, _) in found.items() if not any(each.is_guess for each in decisions)}
    for name, (decisions, may_hide) in found.items():
        value = scores[name].get("value")
        judge = as_text(as_mapping(scores[name].get("metadata")).get("judge")) or _judge_of(spec, sample, name)
        # Two scorers with one judge are two judges: they may ask in other words.
        is_only = len(found) == 1 or certain == {name}
        label = judge if is_only else f"{judge} ({name})" if judge else name
        stated = {PRIMARY: value} | {other: scores[other].get("value") for other in _OURS if other in scores}
        stated |= _scores_in(as_mapping(value))
        own = {known: number for known, each in stated.items() if (number := as_number(each)) is not None}
        yield Grading(label, decisions, may_hide_failures=may_hide, own_scores=own, scorer=name)
    if scores and not found:
        yield Grading(None, ())


def _scores_in(value: Made) -> Made:
    """The scores in a value of several: those with our names, or the only one that is called a score."""
    named = [name for name in value if name.endswith(_SCORE)]
    ours = {name: value[name] for name in _OURS if name in value}
    return ours or ({PRIMARY: value[named[0]]} if len(named) == 1 else {})


def _judge_of(spec: Made, sample: Made, scorer: str) -> str | None:
    """The judge's model: named by the log's metadata, by a role, by an option of the scorer, or the only other one."""
    if named := as_text(as_mapping(spec.get("metadata")).get("judge")):
        return named
    roles = as_mapping(spec.get("model_roles"))
    for role in _JUDGE_ROLES:
        if named := as_text(as_mapping(roles.get(role)).get("model")):
            return named
    for each in map(as_mapping, as_list(spec.get("scorers"))):
        options = as_mapping(each.get("options"))
        named = next((text for name in _JUDGE_OPTIONS if (text := as_text(options.get(name)))), None)
        if each.get("name") == scorer and named:
            return named
    others = set(as_mapping(sample.get("model_usage"))) - {as_text(spec.get("model"))}
    return others.pop() if len(others) == 1 else None


def _means(header: Made, spec: Made, answers: Sequence[Answer]) -> Iterator[Mean]:
    """The means of scores that are named as ours or as their scorer, where its answers have such scores."""
    owned = {(each.scorer, score) for answer in answers for each in answer.gradings for score in each.own_scores}
    scorers = {scorer for scorer, _ in owned}
    for stated in map(as_mapping, as_list(as_mapping(header.get("results")).get("scores"))):
        name = as_text(stated.get("name")) or ""
        scorer = as_text(stated.get("scorer")) or name
        is_primary = scorer in scorers and (name == scorer or name.endswith(_SCORE))
        known = name if name in _OURS else PRIMARY if is_primary else ""
        value = as_number(as_mapping(first_of(as_mapping(stated.get("metrics")), _MEANS)).get("value"))
        if value is None or stated.get("reducer") not in {None, "mean"}:
            continue
        for whose in (scorer,) if scorer in scorers else sorted(scorers):
            if (whose, known) in owned:
                yield Mean(as_text(spec.get("model")), f"mean of {one_line(name)}", known, value, scorer=whose)
