"""The differences between paired model runs: task by task, with what can be said about their mean."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
_Cell = dict[str, Any]


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


@dataclass(frozen=True, slots=True)
class Flip:
    """A criterion that both sides decided, and not alike; values are means over the trials that are complete.

    `first_by_trial` and `second_by_trial` are what these are the means of. `effect` is what the change is worth to the
    task's score. `explanations` are the judge's, by side and trial.
    """

    task_id: str
    criterion_id: str
    first_criterion_id: str
    title: str
    category: str
    weight: float
    first_value: float
    second_value: float
    first_by_trial: Sequence[float]
    second_by_trial: Sequence[float]
    effect: float
    explanations: tuple[tuple[str | None, ...], tuple[str | None, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """What the flips of a category add to the difference; gained and lost are flips that raise or lower the score."""

    category: str
    n_criteria: int
    n_gained: int
    n_lost: int
    contribution: float


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A task's values on both sides, with its flips."""

    task_id: str
    first: float
    second: float
    difference: float
    n_gained: int
    n_lost: int


@dataclass(frozen=True, slots=True)
class Flips:
    """The flips of a difference, worst first, with their sums by category and task, worst first.

    Attributes:
        n_criteria: criteria of the tasks that both sides answered.
        n_compared: those that stand in both rubrics, of tasks that are complete on both sides; all flips are of them.
        n_undecided: those that a side left undecided in every trial that counts; never a flip.
        n_left_out: those that are decided, of tasks where another one is not.
        n_in_one: those that stand in the rubric of one side only, as a revision may have it.
    """

    flips: tuple[Flip, ...]
    categories: tuple[CategoryChange, ...]
    tasks: tuple[TaskChange, ...]
    n_criteria: int
    n_compared: int
    n_undecided: int
    n_left_out: int
    n_in_one: int

    @property
    def explained(self) -> float:
        """The part of the difference that the flips make; all of it unless the rubrics differ."""
        return sum(category.contribution for category in self.categories)


def flips_of(reader: Reader, score: str, differences: Iterable[Difference]) -> list[Flips]:
    """The flips of each difference, without explanations."""
    cells_of: dict[tuple[int, int], list[_Cell]] = {}
    found = []
    for difference in differences:
        ids = (difference.pair.first.model_run.model_run_id, difference.pair.second.model_run.model_run_id)
        if ids not in cells_of:
            # Differences of one pair follow each other; the cells of more than one are not kept.
            parameters = {"first": ids[0], "second": ids[1], "score": score}
            cells_of = {ids: reader.rows(sql.read("queries/compare/flips"), parameters)}
        found.append(_flips(difference, cells_of[ids]))
    return found


def _flips(difference: Difference, cells: Sequence[_Cell]) -> Flips:
    complete = {task.task_id for task in difference.tasks}
    answered = [cell for cell in cells if cell["task_id"] in difference.answered]
    shared = [cell for cell in answered if cell["is_in_both"]]
    decided = [cell for cell in shared if None not in {cell["first_value"], cell["second_value"]}]
    compared = [cell for cell in decided if cell["task_id"] in complete]
    flips = tuple(
        Flip(**{name: value for name, value in cell.items() if name != "is_in_both"})
        for cell in compared
        if cell["first_value"] != cell["second_value"]
    )
    categories, tasks = _by_category(flips, compared, len(complete)), _by_task(flips, difference)
    return Flips(
        flips, categories, tasks, n_criteria=len(answered), n_compared=len(compared),
        n_undecided=len(shared) - len(decided), n_left_out=len(decided) - len(compared),
        n_in_one=len(answered) - len(shared),
    )  # fmt: skip


def _by_category(flips: Sequence[Flip], compared: Sequence[_Cell], n_tasks: int) -> tuple[CategoryChange, ...]:
    n_criteria = Counter(cell["category"] for cell in compared)
    effects: dict[str, list[float]] = {category: [] for category in n_criteria}
    for flip in flips:
        effects[flip.category].append(flip.effect)
    changes = [
        CategoryChange(category, n_criteria[category], *_gained_and_lost(of_category), sum(of_category) / n_tasks)
        for category, of_category in effects.items()
    ]
    return tuple(sorted(changes, key=lambda change: (change.contribution, change.category)))


def _by_task(flips: Sequence[Flip], difference: Difference) -> tuple[TaskChange, ...]:
    effects: dict[str, list[float]] = {task.task_id: [] for task in difference.tasks}
    for flip in flips:
        effects[flip.task_id].append(flip.effect)
    changes = [
        TaskChange(t.task_id, t.first, t.second, t.second - t.first, *_gained_and_lost(effects[t.task_id]))
        for t in difference.tasks
    ]
    return tuple(sorted(changes, key=lambda change: (change.difference, change.task_id)))


def _gained_and_lost(effects: Sequence[float]) -> tuple[int, int]:
    return sum(effect > 0 for effect in effects), sum(effect < 0 for effect in effects)


def with_explanations(reader: Reader, pair: Pair, flips: Sequence[Flip]) -> list[Flip]:
    """The same flips, with the judge's reasons on both sides."""
    if not flips:
        return []
    model_run_ids = (pair.first.model_run.model_run_id, pair.second.model_run.model_run_id)
    cells = [
        {"side": side, "model_run_id": model_run_ids[side], "task_id": flip.task_id, "criterion_id": criterion_id}
        for flip in flips
        for side, criterion_id in enumerate((flip.first_criterion_id, flip.criterion_id))
    ]
    reasons = {
        (row["side"], row["task_id"], row["criterion_id"]): tuple(row["explanations"])
        for row in reader.rows(sql.read("queries/compare/explanations"), {"cells": cells})
    }
    return [
        replace(flip, explanations=(reasons.get((0, flip.task_id, flip.first_criterion_id), ()),
                                    reasons.get((1, flip.task_id, flip.criterion_id), ())))
        for flip in flips
    ]  # fmt: skip
