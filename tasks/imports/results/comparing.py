"""The means that a harness reports, beside those of its answers here."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config import Job
from tasks.imports.results.making import Made, Scored
from tasks.imports.results.records import PRIMARY, Mean
from warehouse import Warehouse

_EXACT = 1e-9
_NAMED = 5


@dataclass(frozen=True)
class Pair:
    """A score of a response there and here; None where it is not scored."""

    task_id: str
    theirs: float | None
    ours: float | None
    why: str


def comparison(job: Job, benchmark: Benchmark, made: Made) -> list[str]:
    """One line for each mean: the log's, ours, and the tasks on which they differ."""
    ours = _our_scores(job, made)
    clipped = {score.score_name for score in benchmark.scores if score.clips_mean}
    named = {score.score_name for score in benchmark.scores}
    lines: list[str] = []
    for mean, scored in _compared(made):
        if mean.score_name in named:
            pairs = [_pair(each, mean, ours) for each in scored]
            lines += _line(mean, scored[0].response["model"], pairs, is_clipped=mean.score_name in clipped)
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


def _compared(made: Made) -> Iterator[tuple[Mean, Sequence[Scored]]]:
    """The log's means with what they are of; where it has none, the mean of its scores for each model."""
    by_place: dict[tuple[str | None, str], list[Scored]] = defaultdict(list)
    for each in made.scored:
        for group in {each.answer.group, ""}:
            by_place[each.answer.model, group].append(each)
    for mean in made.log.means:
        if scored := by_place.get((mean.model, mean.group)):
            yield mean, scored
    if made.log.means:
        return
    for (model, group), scored in by_place.items():
        own = [each.grading.own_scores[PRIMARY] for each in scored if PRIMARY in each.grading.own_scores]
        if own and not group:
            yield Mean(model, "mean of the log's scores", PRIMARY, fmean(own)), scored


def _pair(each: Scored, mean: Mean, scores: Mapping[tuple[str, str, int, str], float | None]) -> Pair:
    place = (each.response["response_id"], each.judge, each.grading.judge_trial, mean.score_name)
    theirs, ours = each.grading.own_scores.get(mean.score_name), scores.get(place)
    return Pair(each.response["task_id"], theirs, ours, _why(each, theirs, ours, is_scored=place in scores))


def _why(each: Scored, theirs: float | None, ours: float | None, *, is_scored: bool) -> str:
    if each.response["text"] is None:
        return "the response failed"
    if not is_scored:
        return "the checks have not admitted the task here"
    if ours is None:
        return "not all criteria are decided here"
    if theirs is not None and theirs == 0 > ours:
        return "clipped for each response there"
    return f"{each.other_weights} other weights" if each.other_weights else ""


def _line(mean: Mean, model: str, pairs: Sequence[Pair], *, is_clipped: bool) -> Iterator[str]:
    if all(pair.theirs is None and pair.ours is None for pair in pairs):
        return
    near = _EXACT if mean.decimals is None else 0.5 * 10**-mean.decimals + _EXACT
    values = [(pair.task_id, pair.ours) for pair in pairs if pair.ours is not None]
    by_task = [fmean(v for _, v in of) for _, of in groupby(sorted(values), key=lambda value: value[0])]
    raw = fmean(by_task) if by_task else None
    ours = max(raw, 0.0) if raw is not None and is_clipped else raw
    differing = [pair for pair in pairs if not _is_near(pair.theirs, pair.ours)]
    if any(_is_near(mean.value, value, near) for value in (ours, raw)) and not differing:
        outcome = f"equal on {len(by_task)} {'task' if len(by_task) == 1 else 'tasks'}"
    elif differing:
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        outcome = f"differs on {', '.join(map(_said, differing[:_NAMED]))}{more}"
    else:
        outcome = "differs, though no response does: it is aggregated in another way"
    yield f"{model}: {mean.name} {mean.value:.4f} in the log, {_number(ours)} here: {outcome}"


def _is_near(theirs: float | None, ours: float | None, near: float = _EXACT) -> bool:
    return theirs is ours if theirs is None or ours is None else abs(theirs - ours) <= near


def _said(pair: Pair) -> str:
    why = f": {pair.why}" if pair.why else ""
    return f"{pair.task_id} ({_number(pair.theirs)} and {_number(pair.ours)}{why})"


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4f}"
