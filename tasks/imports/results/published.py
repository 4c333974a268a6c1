"""The reader of results of the published PRBench harness (github.com/scaleapi/PRBench)."""

import re
from collections.abc import Iterator

from tasks.benchmarks.rows import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    cell_label,
    cell_text,
    text_or_none,
)
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
    error_location,
)
from tasks.llm.replies import PROVIDER_ERROR

_SCORE_KEYS = {PRIMARY: "points_clipped", MIN_NORMALIZED: "points_normalized"}
"""Our name of a score -> the harness's key of all its values."""


def is_published(source: LogSource) -> bool:
    """Return whether the published harness wrote a file."""
    return {"outputs", "config", "points_clipped"} <= source.document.keys()


def read_published(source: LogSource) -> Log:
    """Return the responses and grades of all models in one trial.

    The harness stores a failed judge call as `false` and a response that could not be sampled as
    `N/A`.

    Raises:
        ImportRefused: a part of it is missing or has another form.
    """
    document = source.document
    config = as_mapping(document["config"])
    trial = _trial_of(source, config)
    judge = text_or_none(config.get("judge_model_name"))
    responses = []
    for model, stored_outputs in as_mapping(document["outputs"]).items():
        outputs = as_mapping(stored_outputs)
        scores = _scores_of(document, model, len(outputs))
        for (task, stored_output), own_scores in zip(outputs.items(), scores, strict=True):
            where = f"{source.path}: {model}, task {task}"
            output = as_mapping(stored_output)
            with error_location(where):
                decisions = list(_grades(where, output))
                response = LoggedResponse(
                    where,
                    model,
                    cell_label(output, "id") or task,
                    text=None,
                    trial=trial,
                    transcript=cell_text(output, "convo") or "",
                    failure_texts={"N/A": PROVIDER_ERROR},
                    judgements=(
                        Judgement(judge, decisions, own_scores=own_scores, may_hide_failures=True),
                    ),
                )
            responses.append(response)
    notes = []
    if config.get("web_search"):
        notes.append("the models had web search; --as gives them labels of their own")
    return Log("published PRBench harness", responses, notes)


def _trial_of(source: LogSource, config: LogRow) -> int:
    """Return the trial that the configuration states, or else the name of the file."""
    match = re.search(r"_trial_(\d+)_", source.path.name)
    if match and config.get("trial_number") is None:
        config = {"trial_number": match[1]}
    return number_of(str(source.path), config, "trial_number", lowest=0)


def _scores_of(document: LogRow, model: str, n_outputs: int) -> list[dict[str, float]]:
    """Return the scores of each output of a model, in the order of outputs.

    A task that the data set has twice is one output; scores that do not match the outputs one by
    one are left out.
    """
    scores: list[dict[str, float]] = [{} for _ in range(n_outputs)]
    for name, key in _SCORE_KEYS.items():
        values = as_list(as_mapping(document.get(key)).get(model))
        if len(values) == n_outputs:
            for output_scores, points in zip(scores, values, strict=True):
                value = as_number(points)
                if value is not None:
                    output_scores[name] = value
    return scores


def _grades(where: str, output: LogRow) -> Iterator[Decision]:
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
