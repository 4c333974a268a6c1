"""Result files of m42's code (`judge_responses.jsonl`), and its generations.

Where a judge's reply cannot be read 30 times, it guesses from the words in it and gives `None` as the explanation:
such a decision is a failure here. The files name neither the model nor the judge.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.files import ImportRefused
from tasks.imports.results.formats.values import decided, messages_of
from tasks.imports.results.records import PRIMARY, Answer, Decision, Grading, Log, numbered
from tasks.imports.results.sources import Source

_GUESSED = "None"


def is_of(source: Source) -> bool:
    """Whether a file holds such rows."""
    return bool(source.rows) and {"prompt_id", "prompt", "prompt_response", "rubrics"} <= source.rows[0].keys()


def read(source: Source) -> Log:
    """Its rows, of one model and one judge.

    Raises:
        ImportRefused: what a judge said does not fit the rubric, or is no text of a Python list.
    """
    answers = [_answer(f"{source.path}: row {n}", row) for n, row in enumerate(source.rows, start=1)]
    return Log("m42", numbered(answers))


def _answer(where: str, row: Mapping[str, Any]) -> Answer:
    said = messages_of(row.get("prompt_response"))
    score = as_number(row.get("score"))
    decisions = _decisions(where, as_list(row.get("rubrics")), row.get("responses"))
    own = {} if score is None else {PRIMARY: score}
    return Answer(
        where, None, as_text(row.get("prompt_id")), said[-1][1] if said else None,
        messages=messages_of(row.get("prompt")),
        gradings=(Grading(None, decisions, may_hide_failures=False, own_scores=own),) if decisions else (),
    )  # fmt: skip


def _decisions(where: str, rubric: Sequence[Any], stated: Any) -> Sequence[Decision]:
    try:
        graded = as_list(ast.literal_eval(stated)) if isinstance(stated, str) else as_list(stated)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ImportRefused(f"{where}: `responses` cannot be read; correct the row") from error
    if graded and len(graded) != len(rubric):
        raise ImportRefused(f"{where}: has {len(graded)} `responses` on {len(rubric)} `rubrics`; correct the row")
    return [
        _decision(as_mapping(item), as_mapping(as_mapping(of).get("response_dict")))
        for item, of in zip(rubric, graded, strict=False)
    ]


def _decision(item: Mapping[str, Any], said: Mapping[str, Any]) -> Decision:
    explanation = as_text(said.get("explanation"))
    is_guessed = explanation == _GUESSED
    return Decision(
        as_text(item.get("criterion")),
        None if is_guessed else decided(said.get("criteria_met")),
        explanation=None if is_guessed else explanation,
        error="the harness guessed from a reply that it could not read" if is_guessed else None,
        weight=as_number(item.get("points")),
    )
