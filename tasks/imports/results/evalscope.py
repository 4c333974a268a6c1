"""The reader of EvalScope's output.

Its adapters that judge each criterion write folders with `predictions`, `reviews` and `reports`. A
failed judge call is stored as an attempt with its cause, and then the whole sample has no score. A
sample whose prediction failed has no row.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.benchmarks.rows import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_whole_number,
    cell_label,
    cell_text,
    text_or_none,
)
from tasks.dataset.source import json_rows
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results.records import (
    MIN_NORMALIZED,
    PRIMARY,
    Decision,
    Judgement,
    Log,
    LoggedResponse,
    LogRow,
    LogSource,
    call_failure,
    cause_of,
    error_location,
    messages_of,
    output_failure,
    text_of,
    usage_of,
)
from tasks.imports.results.trials import with_trials
from tasks.llm.replies import PROVIDER_ERROR
from tasks.rules.text.numbers import list_text
from tasks.rules.verdict import PARSE_ERROR

_SCORE_NAMES = {
    "clipped_score": PRIMARY,
    "overall_score": PRIMARY,
    "normalized_score": MIN_NORMALIZED,
}
"""EvalScope's name of a score -> ours."""

_RESULT_FILE = re.compile(
    r"(?:(?P<run>.*)/)?(?P<folder>predictions|reviews)/(?P<model>.+)/(?P<part>[^/]*)\.jsonl"
)
"""Matches the path of a file with results. Its run is the folders above, its part the data set and
subset; the folders of a model with a slash in its name are nested.
"""


class _Sample(NamedTuple):
    """The key of a sample: its prediction and its review are in two files."""

    run: str
    model: str
    part: str
    number: int


def is_evalscope(source: LogSource) -> bool:
    """Return whether a folder holds EvalScope's results."""
    return any(map(_RESULT_FILE.fullmatch, source.files))


def read_evalscope(source: LogSource) -> Log:
    """Return the responses of all models, with each judge's decisions.

    Raises:
        ImportRefused: a row has no index, or something else where a text or a number belongs.
        SourceError: a line is not a JSON object.
    """
    responses = list(with_trials(_responses(source)))
    tasks_by_model = defaultdict(set)
    for response in responses:
        tasks_by_model[response.model].add(response.task_id)
    all_tasks = {response.task_id for response in responses}
    notes = []
    # If a model lacks a task that another model has, its prediction failed, which leaves no row.
    for model, tasks in tasks_by_model.items():
        lacking_tasks = sorted(filter(None, all_tasks - tasks))
        if lacking_tasks:
            notes.append(f"{model} has no prediction on {list_text(lacking_tasks, 5)}")
    return Log("EvalScope", responses, notes)


def _responses(source: LogSource) -> Iterator[LoggedResponse]:
    """Yield each response, in the order of runs, models, parts and samples."""
    rows_by_sample: dict[_Sample, dict[str, LogRow]] = defaultdict(dict)
    for name, content in source.files.items():
        file = _RESULT_FILE.fullmatch(name)
        if file is None:
            continue
        for row in json_rows(source.path / name, content.decode("utf-8-sig").split("\n")):
            number = as_whole_number(row.get("index"))
            if number is None:
                raise ImportRefused(
                    f"{source.path / name}: a row has no whole number as `index`; correct the log"
                )
            sample = _Sample(file["run"] or "", file["model"], file["part"], number)
            rows_by_sample[sample][file["folder"]] = row
    for sample, rows in sorted(rows_by_sample.items()):
        where = f"{source.path / sample.run}: {sample.model}, {sample.part}, index {sample.number}"
        with error_location(where):
            prediction = rows.get("predictions", {})
            response = _response(where, sample, prediction, rows.get("reviews", {}))
        yield response


def _response(where: str, sample: _Sample, prediction: LogRow, review: LogRow) -> LoggedResponse:
    sample_score = as_mapping(review.get("sample_score"))
    score = as_mapping(sample_score.get("score"))
    metadata = {
        **as_mapping(prediction.get("metadata")),
        **as_mapping(sample_score.get("sample_metadata")),
    }
    output = as_mapping(prediction.get("model_output"))
    messages = messages_of(prediction.get("messages") or review.get("messages"))
    # The adapter `prbench`, whose metadata has `task`, shows the judge the response without its
    # thinking; the adapter `health_bench` shows it all.
    judged_key = "extracted_prediction" if "task" in metadata else "prediction"
    text = as_text(score.get(judged_key), "the judged text") or text_of(output)
    status, error = output_failure(output, text)
    return LoggedResponse(
        where,
        cell_label(prediction, "model") or sample.model,
        as_text(metadata.get("task") or metadata.get("prompt_id")),
        text,
        status=status,
        error=error,
        trial=number_of(where, sample_score, "generation_index", lowest=0),
        messages=_sent_messages(messages),
        run=sample.run,
        part=sample.part,
        usage=usage_of(output),
        judgements=_judgements(where, score, as_list(metadata.get("rubrics"))),
        combined_scores=_scores_of(score),
    )


def _sent_messages(messages: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the conversation that was sent, which ends with the last user turn."""
    n_sent = 0
    for number, (role, _) in enumerate(messages, start=1):
        if role == "user":
            n_sent = number
    return [message for message in messages[:n_sent] if message[0] != "tool"]


def _judgements(where: str, score: LogRow, rubric: Sequence[Any]) -> list[Judgement]:
    """Return the decisions of each judge and repetition."""
    decisions_by_judge: dict[tuple[str, int], dict[int, Decision]] = defaultdict(dict)
    attempts = as_list(as_mapping(score.get("metadata")).get("judge_attempts"))
    for attempt in map(as_mapping, attempts):
        case = (text_or_none(attempt.get("case_id")) or "").removeprefix("rubric_")
        if case.isdecimal():
            position = int(case)
            judge = text_or_none(attempt.get("judge_id")) or ""
            judge_trial = number_of(where, attempt, "repeat_id", lowest=0)
            criterion = as_mapping(rubric[position]) if position < len(rubric) else {}
            decision = _decision(attempt, position, criterion)
            decisions_by_judge[judge, judge_trial][position] = decision
    return [
        Judgement(judge or None, list(decisions.values()), judge_trial, may_hide_failures=False)
        for (judge, judge_trial), decisions in decisions_by_judge.items()
    ]


def _scores_of(score: LogRow) -> Mapping[str, float]:
    stated = as_mapping(score.get("value"))
    scores = {}
    for stated_name, name in _SCORE_NAMES.items():
        value = as_number(stated.get(stated_name))
        if value is not None:
            scores[name] = value
    return scores


def _decision(attempt: LogRow, position: int, criterion: LogRow) -> Decision:
    parsed = as_mapping(attempt.get("parsed_value"))
    is_success = attempt.get("status") == "success"
    is_met = parsed.get("criteria_met") if is_success else None
    value = float(is_met) if isinstance(is_met, bool) else None
    output = as_mapping(attempt.get("model_output"))
    cause = cause_of(attempt.get("error"))
    if cause is None and not is_success:
        cause = text_or_none(attempt.get("status"))
    title = as_text(criterion.get("title") or criterion.get("criterion"))
    # With an output, the judge replied, but not with a decision.
    failure = PARSE_ERROR if output else call_failure(cause) or PROVIDER_ERROR
    return Decision(
        cell_label(criterion, "id") or title,
        value,
        position,
        status=failure,
        explanation=None if value is None else cell_text(parsed, "explanation"),
        error=cause if value is None else None,
        weight=as_number(criterion.get("weight", criterion.get("points"))),
        usage={**usage_of(output), "latency_s": as_number(attempt.get("latency"))},
        text=title,
    )
