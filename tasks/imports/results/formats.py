"""The known formats of logs, how a file's format is recognised, and the readers of all formats
except Inspect's.

EvalScope: its adapters that judge each criterion write folders with `predictions`, `reviews` and
`reports`. A failed judge call is stored as an attempt with its cause, and then the whole sample has
no score. A sample whose prediction failed has no row.
"""

import ast
import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
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
from tasks.imports.results import records
from tasks.imports.results.inspect_log import Row, is_inspect, read_inspect
from tasks.imports.results.records import (
    MIN_NORMALIZED,
    PRIMARY,
    Decision,
    Grading,
    Log,
    LoggedResponse,
    LogSource,
)
from tasks.llm.replies import PROVIDER_ERROR
from tasks.rules.errors import UsageError
from tasks.rules.verdict import PARSE_ERROR


def with_trials(responses: Iterable[tuple[str, LoggedResponse]]) -> Iterator[LoggedResponse]:
    """Yield the responses of runs, given part by part, with trials that are unique over all parts
    of a run.

    Responses with the same content in different parts are one response (if there are several in a
    part, those at the same position). Other content, or the same content again in one part, is
    another trial. If a judge decided differently on one response, that is another repetition of the
    judge.
    """
    numbers: dict[Hashable, dict[Hashable, int]] = defaultdict(dict)
    seen: Counter[Hashable] = Counter()

    def number(of: Hashable, part: str, content: Hashable, stated: int) -> int:
        """Return the number of a content: the stated one, or the next free one if that is taken."""
        seen[of, part, content] += 1
        known = numbers[of]
        key = (content, seen[of, part, content])
        return known.setdefault(
            key, max(known.values()) + 1 if stated in known.values() else stated
        )

    for run, response in responses:
        task = (run, response.model, response.task_id, tuple(response.messages or ()))
        part = response.group
        trial = number(task, part, (response.text, response.status), response.trial or 1)
        gradings = []
        for each in response.gradings:
            decisions = tuple(
                (decision.criterion, decision.position, decision.value)
                for decision in each.decisions
            )
            again = number((task, trial, each.judge), part, decisions, each.judge_trial)
            gradings.append(each._replace(judge_trial=again))
        yield response._replace(trial=trial, gradings=gradings)


_SCORES = {
    "clipped_score": PRIMARY,
    "overall_score": PRIMARY,
    "normalized_score": MIN_NORMALIZED,
}


def read_evalscope(source: LogSource) -> Log:
    """Return the responses of all models, with each judge's decisions.

    Raises:
        ImportRefused: a file cannot be read.
    """
    rows: dict[tuple[str, str, str, int], dict[str, Row]] = defaultdict(dict)
    for name, content in source.files.items():
        key = _file_key(name)
        if key:
            run, folder, model, part = key
            for row in json_rows(source.path / name, content.decode("utf-8-sig").split("\n")):
                rows[run, model, part, as_whole_number(row.get("index")) or 0][folder] = row
    responses = list(
        with_trials(
            (
                run,
                _response(
                    f"{source.path / run}: {model}, {part}, index {index}",
                    model,
                    part,
                    of.get("predictions", {}),
                    of.get("reviews", {}),
                ),
            )
            for (run, model, part, index), of in sorted(rows.items(), key=lambda item: item[0])
        )
    )
    # If a model lacks a task that another model has, its prediction failed, which leaves no row.
    tasks: dict[str | None, set[str]] = defaultdict(set)
    for response in responses:
        tasks[response.model].add(response.task_id or "")
    every = set().union(*tasks.values())
    notes = [
        f"{m} has no prediction on {', '.join(sorted(every - of))}"
        for m, of in tasks.items()
        if every - of
    ]
    return Log("EvalScope", responses, notes)


def _file_key(name: str) -> tuple[str, str, str, str] | None:
    """Return the run (the folders above), the folder, the model and the part (data set and subset)
    of a file.

    The folders of a model whose name has a slash are nested.
    """
    file = re.fullmatch(r"(?:(.*)/)?(predictions|reviews)/(.+)/([^/]*)\.jsonl", name)
    return (file[1] or "", file[2], file[3], file[4]) if file else None


@records.located
def _response(where: str, model: str, part: str, prediction: Row, review: Row) -> LoggedResponse:
    scored = as_mapping(review.get("sample_score"))
    score = as_mapping(scored.get("score"))
    metadata = {
        **as_mapping(prediction.get("metadata")),
        **as_mapping(scored.get("sample_metadata")),
    }
    output = as_mapping(prediction.get("model_output"))
    messages = records.messages_of(prediction.get("messages") or review.get("messages"))
    # One adapter shows the judge the response without its thinking, the other shows it all.
    judged = score.get("extracted_prediction" if "task" in metadata else "prediction")
    text = as_text(judged, "the judged text") or records.text_of(output)
    status, error = records.finished(output, text)
    gradings, combined = _gradings(where, score, as_list(metadata.get("rubrics")))
    # The conversation that was sent ends with the last user turn.
    n_sent = max(
        (index for index, (role, _) in enumerate(messages, start=1) if role == "user"), default=0
    )
    return LoggedResponse(
        where,
        cell_label(prediction, "model") or model,
        as_text(metadata.get("task") or metadata.get("prompt_id")),
        text,
        status=status,
        error=error,
        trial=number_of(where, scored, "generation_index", lowest=0),
        messages=[message for message in messages if message[0] != "tool"][:n_sent],
        group=part,
        usage=records.usage_of(output),
        gradings=gradings,
        combined_scores=combined,
    )


def _gradings(
    where: str, score: Row, rubric: Sequence[Any]
) -> tuple[Sequence[Grading], Mapping[str, float]]:
    """Return the decisions of each judge and repetition, and the combined scores if there are
    several judges.
    """
    by_judge: dict[tuple[str, int], dict[int, Decision]] = defaultdict(dict)
    for attempt in map(
        as_mapping, as_list(as_mapping(score.get("metadata")).get("judge_attempts"))
    ):
        if not (
            case := (text_or_none(attempt.get("case_id")) or "").removeprefix("rubric_")
        ).isdecimal():
            continue
        position = int(case)
        judge = (
            text_or_none(attempt.get("judge_id")) or "",
            number_of(where, attempt, "repeat_id", lowest=0),
        )
        item = as_mapping(rubric[position]) if position < len(rubric) else {}
        by_judge[judge][position] = _decision(attempt, position, item)
    # The scores of EvalScope combine all judges and repetitions.
    stated = as_mapping(score.get("value"))
    scores = {
        _SCORES[name]: value
        for name in _SCORES
        if (value := as_number(stated.get(name))) is not None
    }
    own, combined = (scores, {}) if len(by_judge) == 1 else ({}, scores)
    return [
        Grading(
            judge or None,
            list(decisions.values()),
            judge_trial,
            may_hide_failures=False,
            own_scores=own,
        )
        for (judge, judge_trial), decisions in by_judge.items()
    ], combined


def _decision(attempt: Row, position: int, item: Row) -> Decision:
    parsed = as_mapping(attempt.get("parsed_value"))
    met = parsed.get("criteria_met") if attempt.get("status") == "success" else None
    value = float(met) if isinstance(met, bool) else None
    output = as_mapping(attempt.get("model_output"))
    cause = records.cause_of(attempt.get("error")) or text_or_none(attempt.get("status"))
    return Decision(
        cell_label(item, "id") or as_text(item.get("title") or item.get("criterion")),
        value,
        position,
        status=PARSE_ERROR if output else records.call_failure(cause) or PROVIDER_ERROR,
        explanation=None if value is None else cell_text(parsed, "explanation"),
        error=cause if value is None else None,
        weight=as_number(item.get("weight", item.get("points"))),
        usage={**records.usage_of(output), "latency_s": as_number(attempt.get("latency"))},
        text=as_text(item.get("title") or item.get("criterion")),
    )


def read_published(source: LogSource) -> Log:
    """Return the responses and grades of all models in a trial of the published harness
    (github.com/scaleapi/PRBench).

    The harness stores a failed judge call as `false` and a response that could not be sampled as
    `N/A`.

    Raises:
        ImportRefused: a part of it is missing or has another form.
    """
    path = source.path
    document = source.document
    config = as_mapping(document["config"])
    named = re.search(r"_trial_(\d+)_", path.name) if config.get("trial_number") is None else None
    trial = number_of(
        str(path), {"trial_number": named[1]} if named else config, "trial_number", lowest=0
    )
    responses = []
    for model, outputs in as_mapping(document["outputs"]).items():
        # Data points are in the order of outputs; a task that the data set has twice is one output.
        points = {
            name: of
            for kind, name in (("clipped", PRIMARY), ("normalized", MIN_NORMALIZED))
            if len(of := as_list(as_mapping(document.get(f"points_{kind}")).get(model)))
            == len(as_mapping(outputs))
        }
        for index, (task, output) in enumerate(as_mapping(outputs).items()):
            where = f"{path}: {model}, task {task}"
            given = as_mapping(output)
            own = {
                name: value
                for name, of in points.items()
                if (value := as_number(of[index])) is not None
            }
            judge = text_or_none(config.get("judge_model_name"))
            response = _of_published(where, model, task, given, judge, own)
            responses.append(response._replace(trial=trial))
    notes = (
        ["the models had web search; --as gives them labels of their own"]
        if config.get("web_search")
        else []
    )
    return Log("published PRBench harness", responses, notes)


@records.located
def _of_published(
    where: str, model: str, task: str, output: Row, judge: str | None, scores: Mapping[str, float]
) -> LoggedResponse:
    grading = Grading(
        judge, list(_grades(where, output)), own_scores=scores, may_hide_failures=True
    )
    return LoggedResponse(
        where,
        model,
        cell_label(output, "id") or task,
        text=None,
        transcript=cell_text(output, "convo") or "",
        failure_texts={"N/A": PROVIDER_ERROR},
        gradings=(grading,),
    )


def _grades(where: str, output: Mapping[str, Any]) -> Iterator[Decision]:
    texts = as_list(output.get("rubric_texts"))
    grades = as_list(output.get("grades"))
    weights = as_list(output.get("weights")) or [None] * len(texts)
    if not len(texts) == len(grades) == len(weights):
        raise ImportRefused(
            f"{where}: has {len(texts)} rubric_texts, {len(grades)} grades and {len(weights)}"
            " weights"
        )
    for text, grade, weight in zip(texts, grades, weights, strict=True):
        value = {"true": 1.0, "false": 0.0}.get(str(grade).strip().lower())
        if value is None:
            raise ImportRefused(f"{where}: a grade is {grade!r}; it is true or false")
        yield Decision(as_text(text, "a rubric text"), value, weight=as_number(weight))


_UNANSWERED = {"No response (bad request).": PROVIDER_ERROR}
_USAGE = {
    "prompt_tokens": "input_tokens",
    "cached_tokens": "input_cached_tokens",
    "completion_tokens": "output_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
}
_SECTION = "<h3>Prompt conversation</h3>"
_RESPONSE = "<h3>Sampled message</h3>"
_RESULTS = "<h3>Results</h3>"
_GRADES = "<p>Rubrics with grades: "
_SCORE = re.compile(r"<p>Score: (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)</p>")


def is_simple(source: LogSource) -> bool:
    """Return whether simple-evals wrote a file.

    Known are the JSON with all results, its examples one per line, and the HTML report. The file of
    metrics has no responses, so it is refused.
    """
    if "example_level_metadata" in as_mapping(source.document.get("metadata")):
        return True
    if source.rows:
        return {"rubric_items", "completion", "prompt_id"} <= source.rows[0].keys()
    return _SECTION in source.text and _GRADES in source.text


def read_simple(source: LogSource) -> Log:
    """Return the examples, of one model and one judge, which the files do not name.

    The harness repeats a judge's call until it can read the reply, so no failure is hidden. If the
    provider refused a call, the harness stores a text of its own as the response.
    """
    examples = as_list(as_mapping(source.document.get("metadata")).get("example_level_metadata"))
    if examples:
        responses = [
            _of_example(f"{source.path}: example {n}", as_mapping(e))
            for n, e in enumerate(examples, 1)
        ]
    elif source.rows:
        responses = [
            _of_example(f"{source.path}: row {n}", row)
            for n, row in enumerate(source.rows, start=1)
        ]
    else:
        responses = list(_of_report(source.path, source.text))
    return Log("simple-evals", list(with_trials(("", each) for each in responses)))


@records.located
def _of_example(where: str, example: Mapping[str, Any]) -> LoggedResponse:
    completion = example.get("completion")
    if isinstance(completion, list):
        text = records.judged_text(as_mapping(completion[-1])) if completion else None
    else:
        text = cell_text(example, "completion")
    usage = as_mapping(example.get("usage"))
    score = as_number(example.get("score"))
    decisions = [
        Decision(
            cell_text(item, "criterion"),
            records.decided(item.get("criteria_met")),
            explanation=cell_text(item, "explanation"),
            weight=as_number(item.get("points")),
            error=records.cause_of(item.get("error")),
        )
        for item in map(as_mapping, as_list(example.get("rubric_items")))
    ]
    return LoggedResponse(
        where,
        None,
        cell_label(example, "prompt_id"),
        text,
        failure_texts=_UNANSWERED,
        messages=records.messages_of(example.get("prompt")) or None,
        usage={column: as_whole_number(usage.get(name)) for column, name in _USAGE.items()},
        gradings=(_grading(decisions, score),) if decisions or score is not None else (),
    )


def _of_report(path: Path, text: str) -> Iterator[LoggedResponse]:
    """Yield the examples of an HTML report.

    It has no ids, so tasks are identified by their conversations.

    Messages are escaped; the grades are not.
    """
    for number, section in enumerate(text.split(_SECTION)[1:], start=1):
        conversation, _, rest = section.partition(_RESPONSE)
        sampled, _, results = rest.partition(_RESULTS)
        message = next(_messages(sampled), None)
        score = _SCORE.search(results)
        grades = (
            results.partition(_GRADES)[2].rpartition("</p>")[0].replace("<br>", "\n").strip("\n")
        )
        decisions = records.marked(grades, {"True": 1.0, "False": 0.0}, "\n\tExplanation: ")
        yield LoggedResponse(
            f"{path}: example {number}",
            None,
            None,
            message and message[1],
            messages=list(_messages(conversation)),
            failure_texts=_UNANSWERED,
            gradings=(_grading(decisions, float(score[1]) if score else None),),
        )


def _messages(part: str) -> Iterator[tuple[str, str]]:
    """Yield the role and exact text of each message; an HTML parser would drop a line feed before a
    text.
    """
    for message in part.split('<div class="message ')[1:]:
        role, _, rest = message.partition('<div class="role">')[2].partition("<pre>")
        text, end, _ = rest.partition("</pre>")
        if end and role.strip():
            yield role.split(None, 1)[0].partition("<")[0], html.unescape(text)


def _grading(decisions: Sequence[Decision], score: float | None) -> Grading:
    return Grading(
        None,
        decisions,
        may_hide_failures=False,
        own_scores={} if score is None else {PRIMARY: score},
    )


def read_m42(source: LogSource) -> Log:
    """Return the rows, of one model and one judge, which the files do not name.

    If the harness cannot read a judge's reply in 30 attempts, it guesses from the words and stores
    the explanation `None`; here, such a decision is a failure.

    Raises:
        ImportRefused: the judge's decisions do not match the rubric, or are not the text of a
            Python list.
    """
    responses = [
        _of_row(f"{source.path}: row {n}", row) for n, row in enumerate(source.rows, start=1)
    ]
    return Log("m42", list(with_trials(("", each) for each in responses)))


def _of_row(where: str, row: Mapping[str, Any]) -> LoggedResponse:
    rubric = as_list(row.get("rubrics"))
    stated = row.get("responses")
    graded = as_list(ast.literal_eval(stated) if isinstance(stated, str) else stated)
    if graded and len(graded) != len(rubric):
        raise ImportRefused(
            f"{where}: has {len(graded)} `responses` on {len(rubric)} `rubrics`; correct the row"
        )
    replies = [as_mapping(as_mapping(each).get("response_dict")) for each in graded]
    guess = {"error": "the harness guessed from a reply that it could not read"}
    known = [guess if reply.get("explanation") == "None" else reply for reply in replies]
    items = [{**reply, **as_mapping(item)} for item, reply in zip(rubric, known, strict=False)]
    return _of_example(
        where,
        {
            **row,
            "completion": row.get("prompt_response"),
            "rubric_items": items,
        },
    )


AUTO = "auto"
_M42 = {"prompt_id", "prompt", "prompt_response", "rubrics"}


class Format(NamedTuple):
    """A format of logs: its title, and the functions that recognise and read its files."""

    title: str
    is_of: Callable[[LogSource], bool]
    read: Callable[[LogSource], Log]


FORMATS: Mapping[str, Format] = {
    "prbench": Format(
        "a result of the published PRBench harness",
        lambda source: {"outputs", "config", "points_clipped"} <= source.document.keys(),
        read_published,
    ),
    "inspect": Format("a log of Inspect AI", is_inspect, read_inspect),
    "evalscope": Format(
        "an output folder of EvalScope", lambda log: any(map(_file_key, log.files)), read_evalscope
    ),
    "simple-evals": Format("a result of simple-evals", is_simple, read_simple),
    "m42": Format(
        "a result file of m42's code",
        lambda source: any(row.keys() >= _M42 for row in source.rows[:1]),
        read_m42,
    ),
}
"""Name -> format; the first format that recognises a file is used."""


def format_of(source: LogSource, name: str = AUTO) -> Format:
    """Return the format that recognises a source; only the named one is tried if `name` is not
    `auto`.

    Raises:
        UsageError: no format that was tried recognises the source.
    """
    tried = list(FORMATS.values()) if name == AUTO else [FORMATS[name]]
    known_format = next((each for each in tried if each.is_of(source)), None)
    if known_format:
        return known_format
    known = ("one of: " if len(tried) > 1 else "") + ", ".join(each.title for each in tried)
    raise UsageError(
        f"{source.path}: is not {known}; `prbench import responses` and `import verdicts` read"
        " tables"
    )
