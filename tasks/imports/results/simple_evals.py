"""The readers of results of simple-evals and of m42's code, which has the same examples in rows."""

import ast
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tasks.benchmarks.rows import (
    as_list,
    as_mapping,
    as_number,
    as_whole_number,
    cell_label,
    cell_text,
)
from tasks.imports.files import ImportRefused
from tasks.imports.results.records import (
    PRIMARY,
    Decision,
    Judgement,
    Log,
    LoggedResponse,
    LogRow,
    LogSource,
    cause_of,
    error_location,
    judged_text,
    marked_decisions,
    messages_of,
    value_of_decision,
)
from tasks.imports.results.trials import with_trials
from tasks.llm.replies import PROVIDER_ERROR

_FAILURE_TEXTS = {"No response (bad request).": PROVIDER_ERROR}
_USAGE = {
    "prompt_tokens": "input_tokens",
    "cached_tokens": "input_cached_tokens",
    "completion_tokens": "output_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
}
"""This project's name of a number of tokens -> that of simple-evals."""
_SECTION = "<h3>Prompt conversation</h3>"
"""The first heading of an example in the HTML report; the next ones are those of its response and
results.
"""
_RESPONSE = "<h3>Sampled message</h3>"
_RESULTS = "<h3>Results</h3>"
_GRADES = "<p>Rubrics with grades: "
_SCORE = re.compile(r"<p>Score: (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)</p>")
_EXAMPLE_COLUMNS = {"rubric_items", "completion", "prompt_id"}
_M42_COLUMNS = {"prompt_id", "prompt", "prompt_response", "rubrics"}


def is_simple(source: LogSource) -> bool:
    """Return whether a file is a result of simple-evals with responses.

    It is the JSON with all results, or a file with its examples one per line, or the HTML report.
    A file with metrics only is not.
    """
    if "example_level_metadata" in as_mapping(source.document.get("metadata")):
        return True
    if source.rows:
        return source.rows[0].keys() >= _EXAMPLE_COLUMNS
    return _SECTION in source.text and _GRADES in source.text


def read_simple(source: LogSource) -> Log:
    """Return the examples, of one model and one judge, which the files do not name.

    The harness repeats a judge's call until it can read the reply, so no failure is hidden. If the
    provider refused a call, the harness stores a text of its own as the response.
    """
    metadata = as_mapping(source.document.get("metadata"))
    if "example_level_metadata" in metadata:
        examples = as_list(metadata["example_level_metadata"])
        responses = _responses(f"{source.path}: example", map(as_mapping, examples))
    elif source.rows:
        responses = _responses(f"{source.path}: row", source.rows)
    else:
        responses = _responses_of_report(source.path, source.text)
    return Log("simple-evals", list(with_trials(responses)))


def _responses(where: str, examples: Iterable[LogRow]) -> Iterator[LoggedResponse]:
    """Yield the response of each example; messages have its number after `where`."""
    for number, example in enumerate(examples, start=1):
        with error_location(f"{where} {number}"):
            response = _response(f"{where} {number}", example)
        yield response


def _response(where: str, example: LogRow) -> LoggedResponse:
    completion = example.get("completion")
    text = None
    if not isinstance(completion, list):
        text = cell_text(example, "completion")
    elif completion:
        text = judged_text(as_mapping(completion[-1]))
    usage = as_mapping(example.get("usage"))
    score = as_number(example.get("score"))
    decisions = [_decision(as_mapping(item)) for item in as_list(example.get("rubric_items"))]
    judgements = []
    if decisions or score is not None:
        judgements.append(_judgement(decisions, score))
    return LoggedResponse(
        where,
        model=None,
        task_id=cell_label(example, "prompt_id"),
        text=text,
        failure_texts=_FAILURE_TEXTS,
        messages=messages_of(example.get("prompt")) or None,
        usage={column: as_whole_number(usage.get(name)) for column, name in _USAGE.items()},
        judgements=judgements,
    )


def _decision(item: LogRow) -> Decision:
    return Decision(
        cell_text(item, "criterion"),
        value_of_decision(item.get("criteria_met")),
        explanation=cell_text(item, "explanation"),
        weight=as_number(item.get("points")),
        error=cause_of(item.get("error")),
    )


def _responses_of_report(path: Path, text: str) -> Iterator[LoggedResponse]:
    """Yield the examples of an HTML report.

    It has no ids, so tasks are identified by their conversations. Messages are escaped; the grades
    are not.
    """
    for number, section in enumerate(text.split(_SECTION)[1:], start=1):
        conversation, _, rest = section.partition(_RESPONSE)
        sampled, _, results = rest.partition(_RESULTS)
        _, response = next(_messages(sampled), ("", None))
        score = _SCORE.search(results)
        grades = results.partition(_GRADES)[2].rpartition("</p>")[0]
        decisions = marked_decisions(
            grades.replace("<br>", "\n").strip("\n"),
            {"True": 1.0, "False": 0.0},
            "\n\tExplanation: ",
        )
        yield LoggedResponse(
            f"{path}: example {number}",
            model=None,
            task_id=None,
            text=response,
            messages=list(_messages(conversation)),
            failure_texts=_FAILURE_TEXTS,
            judgements=(_judgement(decisions, float(score[1]) if score else None),),
        )


def _messages(part: str) -> Iterator[tuple[str, str]]:
    """Yield the role and exact text of each message.

    An HTML parser would drop a line feed before a text.
    """
    for message in part.split('<div class="message ')[1:]:
        _, _, content = message.partition('<div class="role">')
        heading, _, rest = content.partition("<pre>")
        text, end, _ = rest.partition("</pre>")
        words = heading.split(None, 1)
        if end and words:
            role, _, _ = words[0].partition("<")
            yield role, html.unescape(text)


def _judgement(decisions: Sequence[Decision], score: float | None) -> Judgement:
    return Judgement(
        None,
        decisions,
        may_hide_failures=False,
        own_scores={} if score is None else {PRIMARY: score},
    )


def is_m42(source: LogSource) -> bool:
    """Return whether m42's code wrote a file."""
    return bool(source.rows) and source.rows[0].keys() >= _M42_COLUMNS


def read_m42(source: LogSource) -> Log:
    """Return the rows, of one model and one judge, which the files do not name.

    If the harness cannot read a judge's reply in 30 attempts, it guesses from the words and stores
    the explanation `None`; here, such a decision is a failure.

    Raises:
        ImportRefused: the judge's decisions are no list, or do not match the rubric.
    """
    where = f"{source.path}: row"
    examples = (
        _example_of_m42(f"{where} {number}", row) for number, row in enumerate(source.rows, start=1)
    )
    return Log("m42", list(with_trials(_responses(where, examples))))


def _example_of_m42(where: str, row: LogRow) -> LogRow:
    """Return a row of m42's code as an example of simple-evals."""
    rubric = as_list(row.get("rubrics"))
    stored_grades = row.get("responses")
    if isinstance(stored_grades, str):
        try:
            stored_grades = ast.literal_eval(stored_grades)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ImportRefused(f"{where}: `responses` is no list; correct the row") from error
    grades = as_list(stored_grades)
    if grades and len(grades) != len(rubric):
        raise ImportRefused(
            f"{where}: has {len(grades)} `responses` on {len(rubric)} `rubrics`; correct the row"
        )
    items = []
    # Without grades, no criterion is decided.
    for criterion, grade in zip(rubric, grades, strict=False):
        reply = as_mapping(as_mapping(grade).get("response_dict"))
        if reply.get("explanation") == "None":
            reply = {"error": "the harness guessed from a reply that it could not read"}
        items.append({**reply, **as_mapping(criterion)})
    return {**row, "completion": row.get("prompt_response"), "rubric_items": items}
