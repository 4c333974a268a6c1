"""The means that a harness reports, beside those of its answers here."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.imports.results.making import Made, Scored
from tasks.imports.results.records import PRIMARY, Mean
from warehouse import Warehouse

Unit = Sequence[Scored]
"""Gradings that the harness made one score of."""
_EXACT = 1e-9
_NAMED = 5


@dataclass(frozen=True)
class Pair:
    """A score of a response there and here; None where it is not scored."""

    task_id: str
    trial: int
    theirs: float | None
    ours: float | None
    why: str


def comparison(job: Job, benchmark: Benchmark, made: Made) -> list[str]:
    """One line for each mean: the log's, ours, and the tasks on which they differ."""
    ours = _our_scores(job, made)
    clipped = {score.score_name for score in benchmark.scores if score.clips_mean}
    named = {score.score_name for score in benchmark.scores}
    lines: list[str] = []
    for mean, whose, units in _compared(made):
        if mean.score_name in named:
            pairs = [_pair(unit, mean, ours) for unit in units]
            lines += _line(mean, whose, pairs, is_clipped=mean.score_name in clipped)
    return lines


def _our_scores(job: Job, made: Made) -> Mapping[tuple[str, str, int, str], float | None]:
    parameters = {
        "responses": sorted({each.response["response_id"] for each in made.scored}),
        "judges": sorted({each.judge for each in made.scored}),
        "grading": made.grading,
    }
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows(sql.read("questions/imports/scores_of"), parameters)
    return {(r["response_id"], r["judge"], r["judge_trial"], r["score_name"]): r["value"] for r in rows}


def _compared(made: Made) -> Iterator[tuple[Mean, str, Sequence[Unit]]]:
    """The log's means with whose they are and what they are of.

    Where a log has no mean of a model and scorer, the mean over tasks of its scores stands for it.
    """
    by_place = _by_place(made)
    for mean in made.log.means:
        for whose, units in by_place.get((mean.model, mean.scorer, mean.group), {}).items():
            yield mean, whose, units
    stated = {(mean.model, mean.scorer) for mean in made.log.means}
    for (model, scorer, group), by_judge in by_place.items():
        if group or (model, scorer) in stated:
            continue
        for whose, units in by_judge.items():
            own = [(unit[0].response["task_id"], _theirs(unit, PRIMARY)) for unit in units]
            if by_task := _by_task(own):
                yield Mean(model, "mean of the log's scores", PRIMARY, fmean(by_task)), whose, units


def _by_place(made: Made) -> Mapping[tuple[str | None, str, str], Mapping[str, list[Unit]]]:
    """What has one score there, by the model, scorer and part that a mean is of, and then by whose it is."""
    found: dict[tuple[str | None, str, str], dict[str, list[Unit]]] = defaultdict(lambda: defaultdict(list))
    for judge, unit in _units(made):
        answer = unit[0].answer
        for group in {answer.group, ""}:
            found[answer.model, unit[0].grading.scorer, group][f"{unit[0].response['model']}{judge}"].append(unit)
    return found


def _by_task(scores: Iterable[tuple[str, float | None]]) -> list[float]:
    """The mean of each task over its responses that have a score."""
    known = sorted((task_id, score) for task_id, score in scores if score is not None)
    return [fmean(score for _, score in of) for _, of in groupby(known, key=lambda score: score[0])]


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


def _theirs(unit: Unit, name: str) -> float | None:
    return (unit[0].answer.scores_together or unit[0].grading.own_scores).get(name)


def _pair(unit: Unit, mean: Mean, scores: Mapping[tuple[str, str, int, str], float | None]) -> Pair:
    response = unit[0].response
    places = [(response["response_id"], each.judge, each.grading.judge_trial, mean.score_name) for each in unit]
    found = [value for place in places if (value := scores.get(place)) is not None]
    theirs, ours = _theirs(unit, mean.score_name), fmean(found) if len(found) == len(unit) else None
    why = _why(unit, theirs, ours, is_scored=all(place in scores for place in places))
    return Pair(response["task_id"], response["trial"], theirs, ours, why)


def _why(unit: Unit, theirs: float | None, ours: float | None, *, is_scored: bool) -> str:
    if unit[0].response["text"] is None:
        return "the response failed"
    if not is_scored:
        return "the checks have not admitted the task here"
    if ours is None:
        return "not all criteria are decided here"
    if theirs is not None and theirs == 0 > ours:
        return "clipped for each response there"
    n_other = max(each.other_weights for each in unit)
    return f"{n_other} other weights" if n_other else ""


def _line(mean: Mean, whose: str, pairs: Sequence[Pair], *, is_clipped: bool) -> Iterator[str]:
    if all(pair.theirs is None and pair.ours is None for pair in pairs):
        return
    near = _EXACT if mean.decimals is None else 0.5 * 10**-mean.decimals + _EXACT
    by_task = _by_task((pair.task_id, pair.ours) for pair in pairs)
    raw = fmean(by_task) if by_task else None
    # The paper clips the mean; a log that does not is compared with what it was before.
    is_below = raw is not None and raw < 0 and _is_near(mean.value, raw, near)
    ours = max(raw, 0.0) if raw is not None and is_clipped and not is_below else raw
    differing = [pair for pair in pairs if not _is_near(pair.theirs, pair.ours)]
    if _is_near(mean.value, ours, near) and not differing:
        outcome = f"equal on {len(by_task)} {'task' if len(by_task) == 1 else 'tasks'}"
    elif differing:
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        outcome = f"differs on {', '.join(_said(pair, pairs) for pair in differing[:_NAMED])}{more}"
    else:
        outcome = "differs, though no response does: it is aggregated in another way"
    yield f"{whose}: {mean.name} {mean.value:.4f} in the log, {_number(ours)} here: {outcome}"


def _is_near(theirs: float | None, ours: float | None, near: float = _EXACT) -> bool:
    return theirs is ours if theirs is None or ours is None else abs(theirs - ours) <= near


def _said(pair: Pair, pairs: Sequence[Pair]) -> str:
    has_trials = any(other.task_id == pair.task_id and other.trial != pair.trial for other in pairs)
    trial = f" trial {pair.trial}" if has_trials else ""
    why = f": {pair.why}" if pair.why else ""
    return f"{pair.task_id}{trial} ({_number(pair.theirs)} and {_number(pair.ours)}{why})"


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4f}"
