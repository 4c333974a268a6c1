"""The paper's equations in exact fractions, written from its text and not from the SQL.

A `World` is what was observed; every function below derives one published figure from it.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Criterion = tuple[str, int, str]
"""(criterion id, weight, category)"""
Cell = tuple[str, str, int]
"""(task id, model, trial)"""
Decision = int | None
"""1 met, 0 unmet, None failed; what is absent was not judged"""

MODELS = ("ada", "bell", "curie", "dirac")
TRIALS = (1, 2)
JUDGES = ("judge-a", "judge-b")
CATEGORIES = ("Accuracy", "Risk", "Utility")


@dataclass(frozen=True)
class World:
    """Rubrics by task, the status of every response, and the decisions of every judge."""

    rubrics: Mapping[str, tuple[Criterion, ...]]
    responses: Mapping[Cell, str]
    decisions: Mapping[str, Mapping[tuple[Cell, str], Decision]]


@dataclass(frozen=True)
class Score:
    """What is known of a score of one response."""

    value: Fraction | None
    lower: Fraction
    upper: Fraction
    n_decided: int
    n_wanted: int


def random_world(seed: int, n_tasks: int) -> World:
    """Rubrics with negative criteria, failed and missing responses, failed and missing verdicts, a slow model."""
    dice = random.Random(seed)
    rubrics = {f"t{i:03d}": _rubric(dice, f"t{i:03d}") for i in range(n_tasks)}
    responses = {
        (task, model, trial): "ok" if dice.random() < 0.96 else "timeout"
        for task in rubrics
        for model in MODELS
        for trial in TRIALS
        # The last model has hardly begun, and so must not shrink what all are ranked on.
        if dice.random() < (0.99 if model != MODELS[-1] else 0.3)
    }
    decisions = {
        judge: {
            (cell, criterion_id): _decision(dice)
            for cell, status in responses.items()
            if status == "ok" and (judge == JUDGES[0] or cell[2] == 1)
            for criterion_id, _, _ in rubrics[cell[0]]
            if dice.random() < 0.997
        }
        for judge in JUDGES
    }
    return World(rubrics, responses, decisions)


def _rubric(dice: random.Random, task: str) -> tuple[Criterion, ...]:
    weights = [dice.randint(1, 10)]
    weights += [dice.choice([w for w in range(-10, 11) if w]) for _ in range(dice.randint(0, 11))]
    return tuple((f"{task}-c{i}", weight, dice.choice(CATEGORIES)) for i, weight in enumerate(weights))


def _decision(dice: random.Random) -> Decision:
    return None if dice.random() < 0.01 else int(dice.random() < 0.5)


def equation_1(points: int, positive: int, negative: int) -> Fraction | None:
    """Points over the positive weight."""
    return Fraction(points, positive) if positive else None


def equation_3(points: int, positive: int, negative: int) -> Fraction | None:
    """Points over the whole range that they could have."""
    return Fraction(points - negative, positive - negative)


EQUATIONS = {"score": equation_1, "min_normalized": equation_3}


def reachable_points(criteria: Iterable[Criterion], decided: Mapping[str, Decision]) -> set[int]:
    """Every sum that the points could still come to, by trying met and unmet for each open criterion."""
    sums = {0}
    for criterion_id, weight, _ in criteria:
        value = decided.get(criterion_id)
        sums = {s + weight * v for s in sums for v in ((0, 1) if value is None else (value,))}
    return sums


def score(world: World, judge: str, cell: Cell, name: str, category: str | None = None) -> Score | None:
    """A response's score over its rubric or one category; None where there is none to speak of."""
    rubric = [c for c in world.rubrics[cell[0]] if category in {None, c[2]}]
    if not rubric:
        return None
    decided = {c[0]: world.decisions[judge].get((cell, c[0])) for c in rubric}
    positive = sum(w for _, w, _ in rubric if w > 0)
    negative = sum(w for _, w, _ in rubric if w < 0)
    values = [EQUATIONS[name](points, positive, negative) for points in sorted(reachable_points(rubric, decided))]
    known = [value for value in values if value is not None]
    if not known:
        return None
    n_decided = sum(value is not None for value in decided.values())
    return Score(known[0] if n_decided == len(rubric) else None, known[0], known[-1], n_decided, len(rubric))
