"""Import of what other harnesses wrote: answers and verdicts of one log in one step, and its means beside ours."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.imports.criteria import Criteria
from tasks.imports.files import ImportRefused, key_of, store
from tasks.imports.responses import stored_responses
from tasks.imports.results.formats import AUTO, format_of
from tasks.imports.results.making import Made, Scored, Tasks, made_of, refuse_labels
from tasks.imports.results.sources import Source
from tasks.imports.verdicts import stored_verdicts
from tasks.rules.identity import IMPORTED
from tasks.rules.text.characters import one_line
from tasks.run.writing import StageReport
from warehouse import Warehouse

_STYLES = (
    "read are a list of objects with criterion and decision, a mapping of criterion to decision, a list `grades` in "
    "the order of the rubric, and marks in an explanation"
)
_EXACT = 1e-9
_NAMED_TASKS, _NAMED_ROWS = 5, 3
Unit = Sequence[Scored]
"""Gradings that the harness made one score of."""


def import_results(
    job: Job, files: Sequence[Path], *, format_name: str = AUTO, model: str | None = None, judge: str | None = None,
    skip_unknown: bool = False,
) -> list[StageReport]:  # fmt: skip
    """Bring in answers and verdicts of the logs of other harnesses, and compare their means with those of the rows.

    `model` and `judge` are labels instead of those in the logs; `{model}` and `{judge}` in them stand for these. Every
    log is looked at whole before the first row is stored. With `skip_unknown` answers and decisions on what the data
    set does not have are left out.

    Raises:
        ImportRefused: something in a log does not fit the data set, or something else is stored in its place.
        UsageError: a file is in no known format, or a label is missing or cannot be one of several models.
    """
    benchmark, key = load_benchmark(job.settings.benchmark), key_of(job)
    with Warehouse(job.warehouse).reader() as reader:
        tasks, criteria = Tasks(reader, key), Criteria(job, reader)
        known = {"responses": stored_responses(reader), "verdicts": stored_verdicts(reader)}
    logs: list[Made] = []
    for source in map(Source, files):
        try:
            log = format_of(source, format_name).read(source)
        except ValueError as error:
            raise ImportRefused(f"{source.path}: cannot be read ({one_line(str(error))}); correct it") from error
        refuse_labels(source.path, log, model, judge)
        made = Made(source.batch_with(model, judge), log, known)
        made_of(job, key, made, tasks, criteria, model=model, judge=judge)
        made.refuse_unfit(source.path, skip_unknown=skip_unknown)
        logs.append(made)
    reports = [_stored(job, made) for made in logs]
    # What was brought in is one line; what one should know about it, and each mean, are others.
    lines: list[StageReport] = []
    for report, made in zip(reports, logs, strict=True):
        lines += [report, *(StageReport(report.stage, notes=[note]) for note in _notes(job, benchmark, made))]
    return lines


def _stored(job: Job, made: Made) -> StageReport:
    """Write the new rows, and report what was brought in: two tables and one batch, which can be retracted."""
    tables = {table: list(rows.values()) for table, rows in made.rows.items()}
    report = store(job, tables, {table: len(ids) for table, ids in made.given.items()}, made.batch)
    report.notes[0] = f"{report.notes[0]}, from {made.log.title}"
    for table, column in (("responses", "text"), ("verdicts", "value")):
        failed = Counter(row["status"] for row in tables[table] if row[column] is None)
        if failed:
            report.notes.append(f"failed {table}: {', '.join(f'{n} {status}' for status, n in sorted(failed.items()))}")
    return report


def _notes(job: Job, benchmark: Benchmark, made: Made) -> Iterator[str]:
    """What one should know about a log that was brought in."""
    gradings = [grading for answer in made.log.answers for grading in answer.gradings]
    hidden = {each.may_hide_failures for each in gradings}
    hidden |= {each.usage.get("may_hide_failures") for grading in gradings for each in grading.decisions}
    if True in hidden:
        yield f"{made.log.title} may store a failed judge call as a decision, so its verdicts are marked"
    found = made.n_found
    if n_known := found["known failure"]:
        yield f"{n_known} decisions left out, since the call is known to have failed and they may hide that"
    if n_lost := found["on no response"]:
        yield f"{n_lost} grades of failed responses left out"
    if n_other := found["other weight"]:
        yield f"{n_other} weights in the log differ from those of this revision"
    if n_bare := found["no criteria"]:
        said = "answer has a score" if n_bare == 1 else "answers have scores"
        yield f"{n_bare} {said} but no criteria that can be read; {_STYLES}"
    yield from made.log.notes
    if made.unfit:
        more = f" and {len(made.unfit) - _NAMED_ROWS} more" if len(made.unfit) > _NAMED_ROWS else ""
        yield f"{len(made.unfit)} rows skipped: {'; '.join(made.unfit[:_NAMED_ROWS])}{more}"
    yield from _comparison(job, benchmark, made)


class Pair(NamedTuple):
    """A score of a response there and here; None where it is not scored."""

    task_id: str
    trial: int
    theirs: float | None
    ours: float | None
    why: str


def _comparison(job: Job, benchmark: Benchmark, made: Made) -> Iterator[str]:
    """One line for each model, judge and score: the mean over tasks of the log's, ours, and where they differ."""
    place: dict[str, Any] = {
        "response_id": sorted({each.response["response_id"] for each in made.scored}),
        "judge": sorted({each.judge for each in made.scored}), "judge_config_hash": IMPORTED, "grading": made.grading,
    }  # fmt: skip
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.select("scores", "response_id, judge, judge_trial, score_name, value", **place)
    ours = {(r["response_id"], r["judge"], r["judge_trial"], r["score_name"]): r["value"] for r in rows}
    by_owner: dict[str, list[Unit]] = defaultdict(list)
    for judge, unit in _units(made):
        by_owner[f"{unit[0].response['model']}{judge}"].append(unit)
    for owner, units in by_owner.items():
        for score in benchmark.scores:
            pairs = [_pair(unit, score.score_name, ours) for unit in units]
            if any(pair.theirs is not None for pair in pairs):
                yield f"{owner}: mean {score.score_name} {_outcome(pairs, is_clipped=score.clips_mean)}"


def _units(made: Made) -> Iterator[tuple[str, Unit]]:
    """What has one score there, and the judge if answers have several: a grading, or all gradings of an answer."""
    by_answer = [list(of) for _, of in groupby(made.scored, key=lambda each: id(each.answer))]
    has_several = any(len(of) > 1 for of in by_answer)
    for gradings in by_answer:
        if gradings[0].answer.scores_together:
            yield "", gradings
            continue
        for each in gradings:
            again = f", judged {each.grading.judge_trial}" if each.grading.judge_trial > 1 else ""
            yield f" by {each.judge}{again}" if has_several else "", [each]


def _pair(unit: Unit, name: str, scores: Mapping[tuple[str, str, int, str], float | None]) -> Pair:
    response = unit[0].response
    places = [(response["response_id"], each.judge, each.grading.judge_trial, name) for each in unit]
    found = [value for place in places if (value := scores.get(place)) is not None]
    theirs = (unit[0].answer.scores_together or unit[0].grading.own_scores).get(name)
    ours = fmean(found) if len(found) == len(unit) else None
    n_other = max(each.other_weights for each in unit)
    why = f": {n_other} other weights" if n_other else ""
    if response["text"] is None:
        why = ": the response failed"
    elif not all(place in scores for place in places):
        why = ": the checks have not admitted the task here"
    elif ours is None:
        why = ": not all criteria are decided here"
    elif theirs is not None and theirs == 0 > ours:
        why = ": clipped for each response there"
    return Pair(response["task_id"], response["trial"], theirs, ours, why)


def _outcome(pairs: Sequence[Pair], *, is_clipped: bool) -> str:
    theirs, ours = _by_task((p.task_id, p.theirs) for p in pairs), _by_task((p.task_id, p.ours) for p in pairs)
    mean = fmean(ours) if ours else None
    differing = [pair for pair in pairs if not _is_near(pair.theirs, pair.ours)]
    outcome = f"equal on {len(ours)} {'task' if len(ours) == 1 else 'tasks'}"
    if differing:
        # The paper clips the mean; where a log's scores are ours, it is compared with what it was before.
        mean = max(mean, 0.0) if is_clipped and mean is not None else mean
        more = f" and {len(differing) - _NAMED_TASKS} more" if len(differing) > _NAMED_TASKS else ""
        outcome = f"differs on {', '.join(_difference(pair, pairs) for pair in differing[:_NAMED_TASKS])}{more}"
    return f"{_number(fmean(theirs))} in the log, {_number(mean)} here: {outcome}"


def _by_task(scores: Iterable[tuple[str, float | None]]) -> list[float]:
    """The mean of each task over its responses that have a score."""
    known = sorted((task_id, score) for task_id, score in scores if score is not None)
    return [fmean(score for _, score in of) for _, of in groupby(known, key=lambda score: score[0])]


def _is_near(theirs: float | None, ours: float | None) -> bool:
    return theirs is ours if theirs is None or ours is None else abs(theirs - ours) <= _EXACT


def _difference(pair: Pair, pairs: Sequence[Pair]) -> str:
    has_trials = any(other.task_id == pair.task_id and other.trial != pair.trial for other in pairs)
    trial = f" trial {pair.trial}" if has_trials else ""
    return f"{pair.task_id}{trial} ({_number(pair.theirs)} and {_number(pair.ours)}{pair.why})"


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4f}"
