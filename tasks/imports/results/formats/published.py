"""Results of the published PRBench harness (github.com/scaleapi/PRBench): one JSON file for all models of a trial.

It stores a failed judge call as `false` and an answer that could not be sampled as `N/A` (see the README).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results.records import MIN_NORMALIZED, PRIMARY, Answer, Decision, Grading, Log, Mean
from tasks.imports.results.sources import Source
from tasks.llm import PROVIDER_ERROR

_UNANSWERED = {"N/A": PROVIDER_ERROR}
_GRADES = {"true": 1.0, "false": 0.0}
_TRIAL = re.compile(r"_trial_(\d+)_")
_MEANS = {"clipped": PRIMARY, "normalized": MIN_NORMALIZED}


def is_of(source: Source) -> bool:
    """Whether a file is such a result."""
    return {"outputs", "config", "points_clipped"} <= source.document.keys()


def read(source: Source) -> Log:
    """The answers and grades of all models.

    Raises:
        ImportRefused: a part of it is missing or has another form.
    """
    document = source.document
    config = as_mapping(document["config"])
    means = [
        Mean(model, f"mean_{kind}", score_name, value)
        for kind, score_name in _MEANS.items()
        for model, stated in as_mapping(document.get(f"mean_{kind}")).items()
        if (value := as_number(stated)) is not None
    ]
    answers = [
        answer
        for model, outputs in as_mapping(document["outputs"]).items()
        for answer in _of_model(source.path, document, model, as_mapping(outputs))
    ]
    notes = ["the models had web search; --as gives them labels of their own"] if config.get("web_search") else []
    return Log("published PRBench harness", answers, means, notes)


def _of_model(path: Path, document: Mapping[str, Any], model: str, outputs: Mapping[str, Any]) -> Iterator[Answer]:
    config = as_mapping(document["config"])
    # Its points stand in the order of its outputs; a task that the data set has twice is one output.
    scores = {
        name: points
        for kind, name in _MEANS.items()
        if len(points := as_list(as_mapping(document.get(f"points_{kind}")).get(model))) == len(outputs)
    }
    named = _TRIAL.search(path.name) if config.get("trial_number") is None else None
    trial = number_of(str(path), {"trial_number": named[1]} if named else config, "trial_number", first=0)
    for place, (task, output) in enumerate(outputs.items()):
        where = f"{path}: {model}, task {task}"
        given = as_mapping(output)
        own = {name: value for name, of in scores.items() if (value := as_number(of[place])) is not None}
        yield Answer(
            where, model, as_text(given.get("id")) or task, None, trial=trial,
            transcript=as_text(given.get("convo")) or "", failure_texts=_UNANSWERED,
            gradings=(Grading(as_text(config.get("judge_model_name")), _decisions(where, given), own_scores=own,
                              may_hide_failures=True),),
        )  # fmt: skip


def _decisions(where: str, output: Mapping[str, Any]) -> Sequence[Decision]:
    texts, grades = as_list(output.get("rubric_texts")), as_list(output.get("grades"))
    weights = as_list(output.get("weights")) or [None] * len(texts)
    if not len(texts) == len(grades) == len(weights):
        raise ImportRefused(f"{where}: has {len(texts)} rubric_texts, {len(grades)} grades and {len(weights)} weights")
    found = []
    for text, grade, weight in zip(texts, grades, weights, strict=True):
        value = _GRADES.get(str(grade).strip().lower())
        if value is None:
            raise ImportRefused(f"{where}: a grade is {grade!r}; it is true or false")
        found.append(Decision(as_text(text), value, weight=as_number(weight)))
    return found
