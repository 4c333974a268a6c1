"""Output folders of EvalScope: `predictions`, `reviews` and `reports` of its adapters that judge each criterion.

A judge call that fails is kept as an attempt with its cause, and the whole sample has no score then. A sample whose
prediction failed leaves no row.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text, as_whole_number
from tasks.imports.files import ImportRefused, number_of
from tasks.imports.results import records
from tasks.imports.results.records import MIN_NORMALIZED, PRIMARY, Answer, Decision, Grading, Log, Source, rows_of
from tasks.llm.replies import PROVIDER_ERROR
from tasks.rules.verdict import PARSE_ERROR

_MOST_OF_TASK = 1000
"""Each is compared with those before it."""


def told_apart(answers: Iterable[tuple[str, Answer]]) -> list[Answer]:
    """Answers of runs, in the order of their parts, with the trials that they are over all parts of their run.

    An answer of a further part that says the same as one of another part is that response (of several, the one with
    its own number), one that says something else is a further trial of it. A judge who decided otherwise on the same
    response judged it once more.
    """
    by_task: dict[Hashable, list[Answer]] = defaultdict(list)
    found = []
    for run, answer in answers:
        known = by_task[run, answer.model, answer.task_id, tuple(answer.messages or ())]
        if len(known) == _MOST_OF_TASK:
            raise ImportRefused(f"{answer.where}: more than {_MOST_OF_TASK:,} responses to one task; split the folder")
        placed = _placed(answer, known)
        known.append(placed)
        found.append(placed)
    return found


def _placed(answer: Answer, known: Sequence[Answer]) -> Answer:
    elsewhere = [each for each in known if each.group != answer.group]
    if not elsewhere:
        return answer
    taken = {each.trial for each in known if each.group == answer.group}
    same = [
        each.trial
        for each in elsewhere
        if (each.text, each.status) == (answer.text, answer.status) and each.trial not in taken
    ]
    if not same:
        return replace(answer, trial=1 + max(each.trial or 0 for each in known))
    trial = answer.trial if answer.trial in same else same[0]
    before = [grading for each in known if each.trial == trial for grading in each.gradings]
    gradings: list[Grading] = []
    for grading in answer.gradings:
        gradings.append(_judged(grading, [*before, *gradings]))
    return replace(answer, trial=trial, gradings=gradings)


def _judged(grading: Grading, before: Sequence[Grading]) -> Grading:
    """A grading with its number among those of the same judge, which may have decided the same before."""
    of_judge = [each for each in before if each.judge == grading.judge]
    numbers = {each.judge_trial for each in of_judge}
    same = [each.judge_trial for each in of_judge if _decided(each) == _decided(grading)]
    if grading.judge_trial not in numbers or grading.judge_trial in same:
        return grading
    return replace(grading, judge_trial=same[0] if same else 1 + max(numbers))


def _decided(grading: Grading) -> tuple[Hashable, ...]:
    return tuple((each.criterion, each.position, each.value) for each in grading.decisions)


_SCORES = {"clipped_score": PRIMARY, "overall_score": PRIMARY, "normalized_score": MIN_NORMALIZED}
_PLACE = "rubric_"
_FOLDERS = ("predictions", "reviews")
Row = Mapping[str, Any]


def is_evalscope(source: Source) -> bool:
    """Whether a folder holds predictions or reviews by model."""
    return any(_place(name) for name in source.files)


def read_evalscope(source: Source) -> Log:
    """The answers of all models, with what each judge decided.

    Raises:
        ImportRefused: a file cannot be read.
    """
    rows: dict[tuple[str, str, str, int], dict[str, Row]] = defaultdict(dict)
    for name, content in source.files.items():
        if place := _place(name):
            run, folder, model, part = place
            for row in rows_of(f"{source.path / name}", content):
                rows[run, model, part, as_whole_number(row.get("index")) or 0][folder] = row
    answers = told_apart(
        (run, _answer(f"{source.path / run}: {model}, {part}, index {index}", model, part, of.get("predictions", {}),
                      of.get("reviews", {})))
        for (run, model, part, index), of in sorted(rows.items(), key=lambda item: item[0])
    )  # fmt: skip
    reviewed = {model for (_, model, _, _), of in rows.items() if "reviews" in of}
    unreviewed = sorted({model for _, model, _, _ in rows} - reviewed)
    notes = [f"{model} has predictions and no reviews, so no verdict" for model in unreviewed]
    return Log("EvalScope", answers, [*_missing(answers), *notes])


def _place(name: str) -> tuple[str, str, str, str] | None:
    """Run, folder, model and part (data set and subset) of a file; the run is the folders above."""
    *above, folder, model, file = ["", "", *name.split("/")]
    if folder not in _FOLDERS or not file.endswith(".jsonl"):
        return None
    return "/".join(filter(None, above)), folder, model, file.removesuffix(".jsonl")


def _answer(where: str, model: str, part: str, prediction: Row, review: Row) -> Answer:
    scored = as_mapping(review.get("sample_score"))
    score = as_mapping(scored.get("score"))
    metadata = {**as_mapping(prediction.get("metadata")), **as_mapping(scored.get("sample_metadata"))}
    output = as_mapping(prediction.get("model_output"))
    messages = records.messages_of(prediction.get("messages") or review.get("messages"))
    # One adapter has the answer judged without its thinking, the other as it came.
    judged = score.get("extracted_prediction" if "task" in metadata else "prediction")
    text = as_text(judged) or records.text_of(output)
    status, error = records.finished(output, text)
    gradings, together = _gradings(where, score, as_list(metadata.get("rubrics")))
    return Answer(
        where, as_text(prediction.get("model")) or model, as_text(metadata.get("task") or metadata.get("prompt_id")),
        text, status=status, error=error, trial=number_of(where, scored, "generation_index", first=0),
        messages=[message for message in messages if message[0] != "tool"][: _asked(messages)], group=part,
        usage=records.usage_of(output), gradings=gradings, scores_together=together,
    )  # fmt: skip


def _asked(messages: Sequence[tuple[str, str]]) -> int:
    """How many messages were sent: the last user turn is the end of them."""
    return max((place for place, (role, _) in enumerate(messages, start=1) if role == "user"), default=0)


def _gradings(where: str, score: Row, rubric: Sequence[Any]) -> tuple[Sequence[Grading], Mapping[str, float]]:
    """What each judge decided, each time; the scores of all of them together where there are several."""
    by_judge: dict[tuple[str, int], dict[int, Decision]] = defaultdict(dict)
    for attempt in map(as_mapping, as_list(as_mapping(score.get("metadata")).get("judge_attempts"))):
        case = as_text(attempt.get("case_id")) or ""
        if not case.removeprefix(_PLACE).isdecimal():
            continue
        place = int(case.removeprefix(_PLACE))
        judge = (as_text(attempt.get("judge_id")) or "", number_of(where, attempt, "repeat_id", first=0))
        by_judge[judge][place] = _decision(attempt, place, as_mapping(rubric[place]) if place < len(rubric) else {})
    # Its scores are of all judges and repetitions together.
    stated = as_mapping(score.get("value"))
    scores = {_SCORES[name]: value for name in _SCORES if (value := as_number(stated.get(name))) is not None}
    own, together = (scores, {}) if len(by_judge) == 1 else ({}, scores)
    return [
        Grading(judge or None, list(decisions.values()), judge_trial, may_hide_failures=False, own_scores=own)
        for (judge, judge_trial), decisions in by_judge.items()
    ], together


def _decision(attempt: Row, place: int, item: Row) -> Decision:
    parsed = as_mapping(attempt.get("parsed_value"))
    met = parsed.get("criteria_met")
    is_decided = attempt.get("status") == "success" and isinstance(met, bool)
    output = as_mapping(attempt.get("model_output"))
    cause = as_text(attempt.get("error")) or as_text(attempt.get("status"))
    return Decision(
        as_text(item.get("id")) or as_text(item.get("title") or item.get("criterion")),
        float(met) if is_decided and isinstance(met, bool) else None, place,
        status=PARSE_ERROR if output else records.call_failure(cause) or PROVIDER_ERROR,
        explanation=as_text(parsed.get("explanation")) if is_decided else None,
        error=None if is_decided else cause,
        weight=as_number(item.get("weight", item.get("points"))),
        usage={**records.usage_of(output), "latency_s": as_number(attempt.get("latency"))},
        text=as_text(item.get("title") or item.get("criterion")),
    )  # fmt: skip


def _missing(answers: Sequence[Answer]) -> list[str]:
    """Tasks that one model has here and another has not: their predictions failed and left no row."""
    tasks: dict[str | None, set[str]] = defaultdict(set)
    for answer in answers:
        tasks[answer.model].add(answer.task_id or "")
    every = set().union(*tasks.values())
    lacking = {model: sorted(every - found) for model, found in tasks.items() if every - found}
    return [f"{model} has no prediction on {', '.join(missing)}" for model, missing in lacking.items()]
