"""The paper's equations in exact fractions, written from its text and not from the SQL; and random rubrics."""

import random
from collections.abc import Mapping
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
