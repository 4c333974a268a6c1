"""Logs of Inspect AI, `.eval` or JSON, read without its library (see the README)."""

import re
from collections.abc import Iterator, Mapping

from tasks.benchmarks.rows import as_list, as_mapping, as_number, cell_label, text_or_none
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results.inspect_decisions import decisions_of
from tasks.imports.results.records import (
    MIN_NORMALIZED,
    PRIMARY,
    Archive,
    Judgement,
    Log,
    LoggedResponse,
    LogRow,
    LogSource,
    cause_of,
    error_location,
    first_text,
    messages_of,
    output_failure,
    text_of,
    usage_of,
)
from tasks.llm.replies import CONTEXT_LENGTH, PROVIDER_ERROR, TIMEOUT, TRUNCATED
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted

_HEADER = "header.json"
_START = "_journal/start.json"
_SAMPLE_FILE = re.compile(r"samples/.+\.json")
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
_SCORE_NAMES = (PRIMARY, MIN_NORMALIZED)


def is_inspect(source: LogSource) -> bool:
    """Return whether a file is a log of Inspect."""
    if source.is_zip:
        return not {_HEADER, _START}.isdisjoint(Archive(source.path, source.content).names)
    return {"version", "eval", "status"} <= source.document.keys() and "model" in as_mapping(
        source.document["eval"]
    )


def read_inspect(source: LogSource) -> Log:
    """Return a log without its invalidated samples.

    Raises:
        ImportRefused: the log is damaged or has no samples.
    """
    header, samples = _content(source)
    if not samples:
        raise ImportRefused(
            f"{source.path}: the log has no samples; log them (`log_samples`) and evaluate again"
        )
    valid_samples = [sample for sample in samples if not sample.get("invalidation")]
    n_invalid = len(samples) - len(valid_samples)
    if header.get("invalidated") is True and not n_invalid:
        raise ImportRefused(
            f"{source.path}: the log is invalidated, and no sample says that it is; evaluate again"
        )
    responses = []
    for sample in valid_samples:
        where = f"{source.path}: sample {sample.get('id')}, epoch {sample.get('epoch')}"
        with error_location(where):
            responses.append(_response(where, header, sample))
    notes = []
    if n_invalid:
        notes.append(f"{counted(n_invalid, 'invalidated sample')} left out")
    status = text_or_none(header.get("status")) or "started"
    if status != "success":
        notes.append(f"the log's status is {status}, so it may lack samples")
    return Log("Inspect AI", responses, notes)


def _content(source: LogSource) -> tuple[LogRow, list[LogRow]]:
    """Return the header and the samples of a log."""
    header = source.document
    samples = as_list(header.get("samples"))
    if source.is_zip:
        archive = Archive(source.path, source.content)
        header = as_mapping(archive.json(_HEADER if _HEADER in archive.names else _START))
        names = [name for name in archive.names if _SAMPLE_FILE.fullmatch(name)]
        samples = list(map(archive.json, names))
    return header, list(map(as_mapping, samples))


def _response(where: str, header: LogRow, sample: LogRow) -> LoggedResponse:
    spec = as_mapping(header.get("eval"))
    attachments = as_mapping(sample.get("attachments"))
    output = as_mapping(sample.get("output"))
    text = _resolved(text_of(output), attachments)
    status, cause = _failure_of(sample, output, text)
    conversation = [
        (role, _resolved(content, attachments) or "")
        for role, content in messages_of(sample.get("input"))
    ]
    metadata = {**as_mapping(sample.get("metadata")), "sample_id": sample.get("id")}
    # In logs of `prbench export inspect`; older ones have the label as `model`.
    stated_label = as_mapping(spec.get("metadata")).get("model_label")
    label = text_or_none(stated_label) or cell_label(spec, "model")
    return LoggedResponse(
        where,
        label,
        first_text(metadata, _TASK_NAMES),
        text,
        status=status,
        error=cause,
        trial=number_of(where, sample, "epoch"),
        messages=conversation,
        usage=usage_of(output, prompt_lacks_cached=True),
        judgements=list(_judgements(spec, sample, _scores_of(header, sample))),
    )


def _scores_of(header: LogRow, sample: LogRow) -> Mapping[str, LogRow]:
    """Return the scores of a sample by scorer.

    Logs of version 1 have one scorer, which the results name.
    """
    scores = as_mapping(sample.get("scores"))
    if not scores and sample.get("score") is not None:
        scorer = as_mapping(as_mapping(header.get("results")).get("scorer"))
        scores = {text_or_none(scorer.get("name")) or "": sample["score"]}
    return {name: as_mapping(score) for name, score in scores.items()}


def _failure_of(sample: LogRow, output: LogRow, text: str | None) -> tuple[str | None, str | None]:
    """Return the status and the cause of a failed sample."""
    limit = as_mapping(sample.get("limit"))
    kind = text_or_none(limit.get("type"))
    if kind is not None:
        reason = text_or_none(limit.get("reason")) or f"limit of {limit.get('limit')}"
        status = _LIMITS.get(kind, PROVIDER_ERROR)
        return status, one_line(f"stopped at the {kind} limit: {reason}")
    error = cause_of(as_mapping(sample.get("error")).get("message"))
    if error:
        # The error of a sample has the failed request first and the cause after it.
        error = re.split(r"\n\n|\\n\\n", error.strip())[-1]
    return output_failure(output, text, error)


def _resolved(text: str | None, attachments: LogRow) -> str | None:
    """Return a text; if it refers to an attachment, the text of that."""
    if text is None or not text.startswith(_ATTACHED):
        return text
    return text_or_none(attachments.get(text.removeprefix(_ATTACHED))) or text


def _judgements(spec: LogRow, sample: LogRow, scores: Mapping[str, LogRow]) -> Iterator[Judgement]:
    """Yield a judgement for each score with decisions.

    If there are scores and none has decisions, yield one judgement without decisions.
    """
    decisions_by_scorer = {}
    certain_scorers = []
    for scorer, score in scores.items():
        score_decisions = decisions_of(score)
        if score_decisions is not None:
            decisions_by_scorer[scorer] = score_decisions
            if not any(decision.is_guess for decision in score_decisions.decisions):
                certain_scorers.append(scorer)
    for scorer, score_decisions in decisions_by_scorer.items():
        stated_judge = as_mapping(scores[scorer].get("metadata")).get("judge")
        judge = text_or_none(stated_judge) or _judge_of(spec, sample, scorer)
        # The main scorer is the only one, or the only one with certain decisions. Others count as
        # other judges even if their judge is the same, because their prompts may differ.
        is_main_scorer = len(decisions_by_scorer) == 1 or certain_scorers == [scorer]
        if not is_main_scorer:
            judge = f"{judge} ({scorer})" if judge else scorer
        yield Judgement(
            judge,
            score_decisions.decisions,
            may_hide_failures=score_decisions.may_hide_failures,
            own_scores=_own_scores(scores, scorer),
        )
    if scores and not decisions_by_scorer:
        yield Judgement(None, ())


def _own_scores(scores: Mapping[str, LogRow], scorer: str) -> dict[str, float]:
    """Return the scores that belong to the decisions of a scorer, under our names."""
    value = scores[scorer].get("value")
    stated = {PRIMARY: value}
    for name in _SCORE_NAMES:
        if name in scores:
            stated[name] = scores[name].get("value")
    # Of several values, use those with the names of our scores, else the only one whose name ends
    # with `_score`.
    values = as_mapping(value)
    our_values = {name: values[name] for name in _SCORE_NAMES if name in values}
    similar = [inner for name, inner in values.items() if name.endswith("_score")]
    if our_values:
        stated |= our_values
    elif len(similar) == 1:
        stated[PRIMARY] = similar[0]
    numbers = {name: as_number(inner) for name, inner in stated.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _judge_of(spec: LogRow, sample: LogRow, scorer: str) -> str | None:
    """Return the judge's model.

    The log's metadata, a role, or an option of the scorer names it; or it is the only other model
    in the sample.
    """
    roles = as_mapping(spec.get("model_roles"))
    stated = {"metadata": as_mapping(spec.get("metadata")).get("judge")}
    for name in _JUDGE_NAMES:
        stated[name] = as_mapping(roles.get(name)).get("model")
    judge = first_text(stated, tuple(stated))
    if judge:
        return judge
    for scorer_spec in map(as_mapping, as_list(spec.get("scorers"))):
        if scorer_spec.get("name") == scorer:
            judge = first_text(as_mapping(scorer_spec.get("options")), _JUDGE_OPTIONS)
            if judge:
                return judge
    other_models = set(as_mapping(sample.get("model_usage"))) - {text_or_none(spec.get("model"))}
    return other_models.pop() if len(other_models) == 1 else None
