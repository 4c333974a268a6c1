"""The differences between paired model runs: task by task, with what can be said about their mean."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

import sql
from tasks.compare.pairs import Kind, Pair, Question, Side, pairs
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.statistics.comparison import PairedDifference, holm, is_significant, paired_difference
from tasks.rules.statistics.intervals import FEW_OTHERS, SMALL
from warehouse import Reader

LEVEL = 0.95
"""Coverage of the intervals."""
Values = Mapping[str, float | None]
"""The value of every task that was answered; None where no trial of it is complete."""
_BySplit = dict[str, dict[int, dict[str, float | None]]]
_AnsweredBySplit = dict[str, dict[int, set[str]]]


@dataclass(frozen=True, slots=True)
class TaskValues:
    """What a task is worth on both sides, each the mean over its complete trials."""

    task_id: str
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How much the second side scores above the first on a set of tasks, before any clipping.

    Attributes:
        tasks: those with a complete trial on both sides; the figures rest on them.
        answered: those that both sides answered, complete or not.
        n_wanted: how many both sides could have.
        p_adjusted: the p-value, corrected for the number of differences that are shown.
        is_significant: whether that is at most 5 %; None where there is no p-value. Interval and smallest detectable
            difference are not corrected.
    """

    pair: Pair
    split: str
    tasks: tuple[TaskValues, ...]
    answered: frozenset[str]
    n_wanted: int
    first_mean: float
    second_mean: float
    paired: PairedDifference
    p_adjusted: float | None = None
    is_significant: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """Second minus first."""
        assert self.paired.difference is not None
        return self.paired.difference


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out: what was compared, the differences by pair and split, and what must be known about all."""

    kind: Kind
    score: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare(reader: Reader, question: Question) -> Answer:
    """The differences that a question asks for.

    Raises:
        UsageError: the names or options do not say what to compare.
        PipelineError: there is nothing to compare.
    """
    kind, found, notes = pairs(reader, question)
    values, answered = _values(reader, question, found)
    differences, empty = [], []
    for pair in found:
        for split in values:
            difference = _difference(question, pair, split, values[split], answered[split])
            if difference is None:
                sides = f"{short(kind, pair.first)} and {short(kind, pair.second)}"
                empty.append(f"{split}: no task is complete for both {sides}.")
            else:
                differences.append(difference)
    if not differences:
        raise PipelineError(f"nothing to compare: {empty[0].removesuffix('.')}")
    # The p-values hold for all together: of several, each may err less.
    adjusted = holm([difference.paired.p_value for difference in differences])
    corrected = tuple(
        replace(difference, p_adjusted=p_value, is_significant=is_significant(p_value))
        for difference, p_value in zip(differences, adjusted, strict=True)
    )
    return Answer(kind, question.score, corrected, (*notes, *_on_random_parts(reader, found), *empty))


def _on_random_parts(reader: Reader, found: Iterable[Pair]) -> list[str]:
    """Which sides rest on a random part of the tasks that was chosen by what it showed."""
    names = {side.model_run.model_run_id: side.model_run.model for pair in found for side in (pair.first, pair.second)}
    rows = reader.rows(sql.read("queries/stopping/stopped_model_runs"), {"model_runs": sorted(names)})
    stopped = sorted({names[row["model_run_id"]] for row in rows})
    if not stopped:
        return []
    return [
        f"Evaluated only until all comparisons were settled: {', '.join(stopped)}. Intervals and p-values here do not "
        "allow for that; `stopped_comparisons` does."
    ]


def short(kind: Kind, side: Side) -> str:
    """The name of a side; a hash by its beginning."""
    return side.name[:12] if kind in {"template", "revision"} else side.name


def _values(reader: Reader, question: Question, found: Iterable[Pair]) -> tuple[_BySplit, _AnsweredBySplit]:
    """By split and model run: the value of every wanted task, and which of them were answered."""
    model_runs = {side.model_run.model_run_id for pair in found for side in (pair.first, pair.second)}
    parameters = {
        "benchmark": question.benchmark, "is_hard": question.is_hard, "splits": list(question.splits),
        "model_runs": sorted(model_runs), "score": question.score,
    }  # fmt: skip
    values: _BySplit = defaultdict(lambda: defaultdict(dict))
    answered: _AnsweredBySplit = defaultdict(lambda: defaultdict(set))
    for row in reader.rows(sql.read("queries/compare/values"), parameters):
        values[row["split"]][row["model_run_id"]][row["task_id"]] = row["value"]
        if row["is_answered"]:
            answered[row["split"]][row["model_run_id"]].add(row["task_id"])
    if not values:
        raise _no_tasks(reader, question)
    return values, answered


def _no_tasks(reader: Reader, question: Question) -> PipelineError:
    if question.is_hard:
        return PipelineError("nothing to compare: no hard subset is selected yet; run `prbench select-hard` first")
    rows = reader.select(
        "intermediate.task_set_members", "distinct split", benchmark=question.benchmark, is_own_hard=False
    )
    if not rows or not question.splits:
        return PipelineError("nothing to compare: no task is admitted here; run `prbench check` to see why")
    known = ", ".join(row["split"] for row in rows)
    return UsageError(f"--split {question.splits[0]}: what is stored has none; it has {known}")


def _difference(
    question: Question, pair: Pair, split: str, values: Mapping[int, Values], answered: Mapping[int, set[str]]
) -> Difference | None:
    """None where no task is complete on both sides."""
    first_id, second_id = pair.first.model_run.model_run_id, pair.second.model_run.model_run_id
    first, second = values.get(first_id, {}), values.get(second_id, {})
    wanted = [task for task in first if task in second and pair.first.counts(task) and pair.second.counts(task)]
    tasks = tuple(
        TaskValues(task, a, b) for task in wanted if (a := first[task]) is not None and (b := second[task]) is not None
    )
    if not tasks:
        return None
    sides = [t.first for t in tasks], [t.second for t in tasks]
    means = [math.fsum(side) / len(tasks) for side in sides]
    paired = paired_difference(*map(np.array, sides), level=LEVEL)
    both = frozenset(wanted) & answered[first_id] & answered[second_id]
    notes = (*pair.notes, *_notes(question, pair, means, paired))
    return Difference(pair, split, tasks, both, len(wanted), means[0], means[1], paired, notes=notes)


def _notes(question: Question, pair: Pair, means: Iterable[float], paired: PairedDifference) -> list[str]:
    notes = []
    for side, mean in zip((pair.first, pair.second), means, strict=True):
        if question.clips_mean and mean < 0:
            notes.append(
                f"The mean of {side.name} is {mean:.3f} before clipping; the leaderboard shows 0. The difference is "
                "of the unclipped means."
            )
    if paired.ci_low is None:
        return notes
    if paired.n_tasks < SMALL:
        notes.append(f"Based on {paired.n_tasks} tasks; below {SMALL} an interval is unreliable.")
    elif paired.is_small:
        notes.append(
            f"Only {paired.n_differing} of {paired.n_tasks} tasks differ; below {FEW_OTHERS} an interval is unreliable."
        )
    return notes
