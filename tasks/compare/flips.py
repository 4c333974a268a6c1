"""A difference taken apart: the criteria on which the two sides differ, and what they add up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sql
from tasks.compare.differences import Difference
from tasks.compare.model_run import Pair
from warehouse import Reader


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


_Cell = dict[str, Any]


def flips_of(reader: Reader, score: str, differences: Iterable[Difference]) -> list[Flips]:
    """The flips of each difference, without explanations."""
    cells_of: dict[tuple[int, int], list[_Cell]] = {}
    found = []
    for difference in differences:
        ids = (difference.pair.first.model_run.model_run_id, difference.pair.second.model_run.model_run_id)
        if ids not in cells_of:
            # Differences of one pair follow each other; the cells of more than one are not kept.
            parameters = {"first": ids[0], "second": ids[1], "score": score}
            cells_of = {ids: reader.rows(sql.read("questions/compare/flips"), parameters)}
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
    return Flips(
        flips=flips,
        categories=_by_category(flips, compared, len(complete)),
        tasks=_by_task(flips, difference),
        n_criteria=len(answered),
        n_compared=len(compared),
        n_undecided=len(shared) - len(decided),
        n_left_out=len(decided) - len(compared),
        n_in_one=len(answered) - len(shared),
    )


def _by_category(flips: Sequence[Flip], compared: Sequence[_Cell], n_tasks: int) -> tuple[CategoryChange, ...]:
    n_criteria: dict[str, int] = {}
    for cell in compared:
        n_criteria[cell["category"]] = n_criteria.get(cell["category"], 0) + 1
    effects: dict[str, list[float]] = {category: [] for category in n_criteria}
    for flip in flips:
        effects[flip.category].append(flip.effect)
    changes = [
        CategoryChange(category, n_criteria[category], *_gained_and_lost(of_category), sum(of_category) / n_tasks)
        for category, of_category in effects.items()
    ]
    return tuple(sorted(changes, key=lambda change: (change.contribution, change.category)))


def _by_task(flips: Sequence[Flip], difference: Difference) -> tuple[TaskChange, ...]:
    effects: dict[str, list[float]] = {}
    for flip in flips:
        effects.setdefault(flip.task_id, []).append(flip.effect)
    changes = [
        TaskChange(
            task.task_id, task.first, task.second, task.second - task.first,
            *_gained_and_lost(effects.get(task.task_id, [])),
        )
        for task in difference.tasks
    ]  # fmt: skip
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
        for row in reader.rows(sql.read("questions/compare/explanations"), {"cells": cells})
    }
    return [
        replace(
            flip,
            explanations=(
                reasons.get((0, flip.task_id, flip.first_criterion_id), ()),
                reasons.get((1, flip.task_id, flip.criterion_id), ()),
            ),
        )
        for flip in flips
    ]
