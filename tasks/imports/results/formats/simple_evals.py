"""Results of simple-evals: the JSON with all results, its examples one per line, or the HTML report.

The file with metrics alone has no answers, and is refused. A judge's reply that cannot be read is asked for again until
it can, so nothing is hidden; a question that the provider refused has a text of the harness as its answer. The files
name neither the model nor the judge.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text, as_whole_number
from tasks.imports.results.formats.marked import marked
from tasks.imports.results.formats.values import decided, messages_of
from tasks.imports.results.records import PRIMARY, Answer, Decision, Grading, Log, Mean, numbered
from tasks.imports.results.sources import Source
from tasks.llm import PROVIDER_ERROR

_UNANSWERED = {"No response (bad request).": PROVIDER_ERROR}
_SECTION = "<h3>Prompt conversation</h3>"
_ANSWER, _RESULTS, _GRADES = "<h3>Sampled message</h3>", "<h3>Results</h3>", "<p>Rubrics with grades: "
_MESSAGE, _ROLE = '<div class="message ', '<div class="role">'
_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_SCORE = re.compile(rf"<p>Score: {_NUMBER}</p>")
_MEAN = re.compile(rf"<td><b>Score</b></td>\s*<td>{_NUMBER}</td>")
_MARKS = {"True": 1.0, "False": 0.0}
_HTML_DECIMALS = 3


def is_of(source: Source) -> bool:
    """Whether a file is one of the three."""
    if "example_level_metadata" in as_mapping(source.document.get("metadata")):
        return True
    if source.rows:
        return {"rubric_items", "completion", "prompt_id"} <= source.rows[0].keys()
    return _SECTION in source.text and _GRADES in source.text


def read(source: Source) -> Log:
    """Its examples, of one model and one judge."""
    if examples := as_list(as_mapping(source.document.get("metadata")).get("example_level_metadata")):
        mean, decimals = as_number(source.document.get("score")), None
        answers = [_of_example(f"{source.path}: example {n}", as_mapping(e)) for n, e in enumerate(examples, 1)]
    elif source.rows:
        mean, decimals = None, None
        answers = [_of_example(f"{source.path}: row {n}", row) for n, row in enumerate(source.rows, start=1)]
    else:
        stated = _MEAN.search(source.text)
        mean, decimals = float(stated[1]) if stated else None, _HTML_DECIMALS
        answers = list(_of_report(source.path, source.text))
    means = [] if mean is None else [Mean(None, "score", PRIMARY, mean, decimals=decimals)]
    return Log("simple-evals", numbered(answers), means)


def _of_example(where: str, example: Mapping[str, Any]) -> Answer:
    said = example.get("completion")
    text = messages_of(said)[-1][1] if as_list(said) else as_text(said)
    usage = as_mapping(example.get("usage"))
    columns = {
        "prompt_tokens": "input_tokens", "cached_tokens": "input_cached_tokens", "completion_tokens": "output_tokens",
        "reasoning_tokens": "output_reasoning_tokens",
    }  # fmt: skip
    score = as_number(example.get("score"))
    decisions = [
        Decision(
            as_text(item.get("criterion")),
            decided(item.get("criteria_met")),
            explanation=as_text(item.get("explanation")),
            weight=as_number(item.get("points")),
        )
        for item in map(as_mapping, as_list(example.get("rubric_items")))
    ]
    return Answer(
        where, None, as_text(example.get("prompt_id")), text, failure_texts=_UNANSWERED,
        messages=messages_of(example.get("prompt")) or None,
        usage={column: as_whole_number(usage.get(name)) for column, name in columns.items()},
        gradings=(_grading(decisions, score),),
    )  # fmt: skip


def _of_report(path: Path, text: str) -> Iterator[Answer]:
    """The examples of an HTML report, which has no ids: their conversations say which tasks they are on.

    Messages are escaped; the part with the grades is not.
    """
    for number, section in enumerate(text.split(_SECTION)[1:], start=1):
        asked, _, rest = section.partition(_ANSWER)
        said, _, results = rest.partition(_RESULTS)
        found, score = next(_messages(said), None), _SCORE.search(results)
        grades = results.partition(_GRADES)[2].rpartition("</p>")[0].replace("<br>", "\n").strip("\n")
        yield Answer(
            f"{path}: example {number}", None, None, found[1] if found else None, messages=list(_messages(asked)),
            failure_texts=_UNANSWERED,
            gradings=(_grading(marked(grades, _MARKS, "\n\tExplanation: "), float(score[1]) if score else None),),
        )  # fmt: skip


def _messages(part: str) -> Iterator[tuple[str, str]]:
    """Role and text of each message, byte for byte: HTML parsers drop a line feed that begins a text."""
    for message in part.split(_MESSAGE)[1:]:
        role, _, rest = message.partition(_ROLE)[2].partition("<pre>")
        text, end, _ = rest.partition("</pre>")
        if end and role.strip():
            yield role.split(None, 1)[0].partition("<")[0], html.unescape(text)


def _grading(decisions: Sequence[Decision], score: float | None) -> Grading:
    own = {} if score is None else {PRIMARY: score}
    return Grading(None, decisions, may_hide_failures=False, own_scores=own)
