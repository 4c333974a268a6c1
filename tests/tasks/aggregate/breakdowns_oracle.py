"""Figures under labels in exact fractions, written from the paper's text and not from the SQL.

A `World` is what was observed; `Oracle` derives every figure of every task set from it. A response that is missing or
failed is one of which nothing is decided.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from tasks.benchmarks.prbench import SEVERITIES
from tests.kit import admitted, at, criterion, response, row, verdict
from tests.tasks.aggregate.scores_oracle import EQUATIONS

MODELS = {"ada": (1, 2, 3), "bell": (1, 2), "curie": (1, 2)}
"""Model -> its trials"""
OWN_HARD = "Finance (own hard)"
TASK_SETS = ("everything", "hard", OWN_HARD)
REFUSED = "t-refused"
WHOLE = ("all", "")

EVERY_ROW = """
    from (
        select * exclude (is_own_hard, n_tasks_annotated) from breakdown_leaderboard
        union all by name
        select *, 'all' as breakdown, '' as label from leaderboard
        union all by name
        select *, 'all' as breakdown, '' as label from hard_leaderboard
    )
"""
"""The rows of all leaderboards, whole task sets under the breakdown `all`."""

Cell = tuple[str, str, int]
"""(task id, model, trial)"""
Label = tuple[str, str]
"""(breakdown, label)"""
Key = tuple[str, str, str, str, str]
"""(task set, model, breakdown, label, score name)"""
Decisions = Mapping[tuple[Cell, str], int | None]
"""1 met, 0 unmet, None failed; what is absent was not judged"""


class Criterion(NamedTuple):
    """A line of a rubric."""

    criterion_id: str
    weight: int
    category: str | None
    severity: str


@dataclass(frozen=True)
class Task:
    """A task with all labels that it counts under."""

    task_id: str
    field: str
    topic: str | None
    expert: str
    turns: int
    decision_types: tuple[str, ...]
    economic_pathways: tuple[str, ...]
    has_reference_texts: bool
    splits: tuple[str, ...]
    rubric: tuple[Criterion, ...]


@dataclass(frozen=True)
class World:
    """Tasks (one of them refused), the status of every response, and the decisions of the one judge."""

    tasks: Mapping[str, Task]
    responses: Mapping[Cell, str]
    decisions: Decisions


def breakdowns_world(seed: int, n_tasks: int = 60) -> World:
    """A world with everything that happens to responses and verdicts, and a task that is refused."""
    dice = random.Random(seed)
    tasks = {f"t{i:03d}": _task(dice, f"t{i:03d}", i) for i in range(n_tasks)}
    tasks[REFUSED] = replace(_task(dice, REFUSED, 0), topic="of the refused task", splits=TASK_SETS)
    responses = {
        # The task that stands alone under its topic has no answer of one model.
        (task, model, trial): "ok" if dice.random() < 0.98 and (task, model) != ("t004", "curie") else "timeout"
        for task in tasks
        for model, trials in MODELS.items()
        for trial in trials
        # One model repeated one field only.
        if dice.random() < 0.985 and not (model == "bell" and trial == 2 and tasks[task].field == "Legal")
    }
    decisions = {
        (cell, each.criterion_id): _decision(dice, cell[1], each.weight)
        for cell, status in responses.items()
        if status == "ok"
        for each in tasks[cell[0]].rubric
        if dice.random() < 0.997
    }
    return World(tasks, responses, decisions)


def _task(dice: random.Random, task_id: str, i: int) -> Task:
    field = "Finance" if i % 2 else "Legal"
    topics = {"Finance": ["Audit", "Tax", "Markets"], "Legal": ["Contracts", "Torts"]}[field]
    return Task(
        task_id=task_id,
        field=field,
        # One task alone under its topic, one without a topic.
        topic={4: "Rare", 7: None}.get(i, dice.choice(topics)),
        expert=dice.choice(["Expert", "Non-Expert"]),
        turns=dice.choice([1, 1, 1, 2, 10]),
        decision_types=tuple(dice.sample(["Choice", "Plan", "Procedure, Forum & Jurisdiction"], dice.randint(0, 3))),
        economic_pathways=tuple(dice.sample(["Risk", "Value", "Operations, Processes & Controls"], dice.randint(1, 2))),
        has_reference_texts=dice.random() < 0.2,
        splits=("everything", *(["hard"] if dice.random() < 0.4 else []), *([OWN_HARD] if i % 4 == 1 else [])),
        rubric=_rubric(dice, task_id),
    )


def _rubric(dice: random.Random, task_id: str) -> tuple[Criterion, ...]:
    weights = [dice.randint(1, 10)]
    weights += [dice.choice([1, 1, -1]) * dice.randint(1, 10) for _ in range(dice.randint(5, 13))]
    categories = ["Accuracy", "Risk", "Utility", None]
    return tuple(
        Criterion(f"{task_id}-c{i}", weight, dice.choices(categories, [5, 3, 3, 1])[0], _severity(weight))
        for i, weight in enumerate(weights)
    )


def _severity(weight: int) -> str:
    return next(name for name, (low, high) in SEVERITIES.items() if low <= weight <= high)


def _decision(dice: random.Random, model: str, weight: int) -> int | None:
    if dice.random() < 0.004:
        return None
    # The last model is so bad that its means fall below zero.
    chance = (0.15 if weight > 0 else 0.8) if model == "curie" else 0.55
    return int(dice.random() < chance)


def rows_of(world: World) -> dict[str, list[dict[str, Any]]]:
    """A world as the rows of the stored tables."""
    tables = admitted(sorted(world.tasks))
    tables["task_rows"] = [
        row(
            "task_rows", task_id=task.task_id, field=task.field, topic=task.topic, expert=task.expert,
            turns=task.turns, decision_types=list(task.decision_types), n_criteria=len(task.rubric), n_rows=1,
            economic_pathways=list(task.economic_pathways), has_reference_texts=task.has_reference_texts,
        )
        for task in world.tasks.values()
    ]  # fmt: skip
    tables["split_members"] = [
        row("split_members", split=split, task_id=task.task_id, position=i)
        for i, task in enumerate(world.tasks.values())
        for split in task.splits
        if split != OWN_HARD
    ]
    tables["hard_subset"] = _selections(world)
    tables["refusals"] = [
        row("refusals", task_id=REFUSED, check_name="weight_range", severity="quarantine", detail="bad")
    ]
    tables["severities"] = severity_rows()
    criteria = {
        each.criterion_id: criterion(task.task_id, i, each.weight, each.category) | {"severity": each.severity}
        for task in world.tasks.values()
        for i, each in enumerate(task.rubric)
    }
    responses = {cell: response(*cell, status=status) for cell, status in world.responses.items()}
    tables["criteria"] = list(criteria.values())
    tables["responses"] = list(responses.values())
    tables["verdicts"] = [
        verdict(responses[cell], criteria[criterion_id], value)
        for (cell, criterion_id), value in world.decisions.items()
    ]
    return tables


def _selections(world: World) -> list[dict[str, Any]]:
    """The own hard selection, and an older one of all tasks that it took the place of."""
    latest = [task.task_id for task in world.tasks.values() if OWN_HARD in task.splits]
    return [
        row("hard_subset", selection_id=name, field="Finance", task_id=task, rank=rank, selected_at=at(seconds))
        for name, tasks, seconds in (("older", world.tasks, 1), ("latest", latest, 2))
        for rank, task in enumerate(tasks, start=1)
    ]


def severity_rows() -> list[dict[str, Any]]:
    """The weight classes with their bands."""
    return [
        row("severities", severity=severity, min_weight=low, max_weight=high)
        for severity, (low, high) in SEVERITIES.items()
    ]


def completed(world: World, fill: Mapping[str, int] | random.Random) -> World:
    """The world in which every response is there and everything is decided.

    `fill` says what the undecided comes to: a value by sign of the weight, `positive` or `negative`, or by dice.
    """
    decisions = {}
    for task in world.tasks.values():
        for model, trials in MODELS.items():
            for trial in trials:
                cell = (task.task_id, model, trial)
                for each in task.rubric:
                    value = world.decisions.get((cell, each.criterion_id))
                    if value is None:
                        sign = "positive" if each.weight > 0 else "negative"
                        value = fill.randint(0, 1) if isinstance(fill, random.Random) else fill[sign]
                    decisions[cell, each.criterion_id] = value
    return World(world.tasks, {cell: "ok" for cell, _ in decisions}, decisions)


BEST = {"positive": 1, "negative": 0}
WORST = {"positive": 0, "negative": 1}


class Known(NamedTuple):
    """The known figures of a response over a part of its rubric; the values by score, where there is one."""

    value: dict[str, Fraction | None]
    lower: dict[str, Fraction]
    upper: dict[str, Fraction]
    n_met: int
    n_decided: int
    n_wanted: int


@dataclass(frozen=True)
class Figure:
    """A row of a leaderboard."""

    n_tasks: int
    n_tasks_full: int
    n_tasks_wanted: int
    is_complete: bool
    coverage: Fraction
    mean_score: Fraction | None
    raw_mean_score: Fraction | None
    mean_lower: Fraction
    mean_upper: Fraction
    met_share: Fraction | None
    n_judged: int | None


COLUMNS = tuple(Figure.__dataclass_fields__)


class Oracle:
    """Every figure of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._known: dict[tuple[Cell, Label], Known] = {}

    def labels_of(self, task_id: str) -> set[Label]:
        """All that a task stands under."""
        task = self.world.tasks[task_id]
        found = {
            WHOLE, ("topic", task.topic or "(none)"), ("expert", task.expert), ("turns", str(task.turns)),
            ("reference_texts", "with" if task.has_reference_texts else "without"), ("subset", "full"),
        }  # fmt: skip
        if OWN_HARD in task.splits:
            found.add(("subset", "hard"))
        found |= {("decision_type", label) for label in task.decision_types}
        found |= {("economic_pathway", label) for label in task.economic_pathways}
        found |= {("category", each.category or "(none)") for each in task.rubric}
        return found | {("severity", each.severity) for each in task.rubric}

    def part(self, task_id: str, label: Label) -> Sequence[Criterion]:
        """The criteria that a task's figure under a label rests on."""
        rubric = self.world.tasks[task_id].rubric
        if label[0] == "category":
            return [each for each in rubric if (each.category or "(none)") == label[1]]
        if label[0] == "severity":
            return [each for each in rubric if each.severity == label[1]]
        return rubric

    def known(self, cell: Cell, label: Label) -> Known:
        """Return the known figures of a response, by completing it in the worst and in the best way."""
        if label[0] not in {"category", "severity"}:
            label = WHOLE
        if (cell, label) not in self._known:
            self._known[cell, label] = self._look_up(cell, self.part(cell[0], label))
        return self._known[cell, label]

    def _look_up(self, cell: Cell, part: Sequence[Criterion]) -> Known:
        decided = [self.world.decisions.get((cell, each.criterion_id)) for each in part]
        lower, upper = (
            self._values(part, [(value if value is not None else fill["positive" if each.weight > 0 else "negative"])
                                for each, value in zip(part, decided, strict=True)])
            for fill in (WORST, BEST)
        )  # fmt: skip
        n_decided = sum(value is not None for value in decided)
        value: dict[str, Fraction | None] = {name: lower[name] if n_decided == len(part) else None for name in lower}
        n_met = sum(value or 0 for value in decided)
        return Known(value, lower, upper, n_met, n_decided, len(part))

    @staticmethod
    def _values(part: Sequence[Criterion], met: Sequence[int]) -> dict[str, Fraction]:
        points = sum(each.weight * value for each, value in zip(part, met, strict=True))
        positive = sum(each.weight for each in part if each.weight > 0)
        negative = sum(each.weight for each in part if each.weight < 0)
        values = {name: equation(points, positive, negative) for name, equation in EQUATIONS.items()}
        return {name: value for name, value in values.items() if value is not None}

    def tasks_on(self, task_set: str) -> list[str]:
        """The tasks of a task set, without the refused one, in the order of their ids."""
        return sorted(t.task_id for t in self.world.tasks.values() if task_set in t.splits and t.task_id != REFUSED)

    @cached_property
    def all_keys(self) -> list[Key]:
        """Every figure that there is: a model with a response to a task that has the score under the label."""
        answered = {cell[:2] for cell in self.world.responses}
        found = {
            (task_set, model, *label, name)
            for task_set in TASK_SETS
            for task in self.tasks_on(task_set)
            for label in self.labels_of(task)
            for name in self.known((task, "ada", 1), label).lower
            for model in MODELS
            if (task, model) in answered
        }
        return sorted(found)

    @cached_property
    def _under(self) -> dict[tuple[str, str, str, str], list[str]]:
        """The tasks by task set, breakdown, label and score."""
        found: dict[tuple[str, str, str, str], list[str]] = {}
        for task_set in TASK_SETS:
            for task in self.tasks_on(task_set):
                for label in self.labels_of(task):
                    for name in self.known((task, "ada", 1), label).lower:
                        found.setdefault((task_set, *label, name), []).append(task)
        return found

    def wanted(self, key: Key) -> list[str]:
        """The tasks of the task set that have the score under the label."""
        task_set, _, *rest = key
        return self._under[task_set, *rest]

    def responses_to(self, key: Key, task: str) -> dict[int, Known]:
        """Return the known figures of a task in each trial of the model."""
        _, model, breakdown, label, _ = key
        return {trial: self.known((task, model, trial), (breakdown, label)) for trial in MODELS[model]}

    def trial_values(self, key: Key) -> dict[str, dict[int, Fraction]]:
        """The values in the trials that are complete, of the tasks that have any."""
        found = {}
        for task in self.wanted(key):
            values = {trial: each.value[key[-1]] for trial, each in self.responses_to(key, task).items()}
            complete = {trial: value for trial, value in values.items() if value is not None}
            if complete:
                found[task] = complete
        return found

    def task_values(self, key: Key) -> dict[str, Fraction]:
        """The mean over the complete trials, of the tasks that have any."""
        return {task: mean(values.values()) for task, values in self.trial_values(key).items()}

    def met_of(self, key: Key) -> dict[str, tuple[int, int]]:
        """Criteria met and judged over the complete trials, of the tasks that have any."""
        return {
            task: (sum(each.n_met for each in known), sum(each.n_wanted for each in known))
            for task, values in self.trial_values(key).items()
            for known in [[self.responses_to(key, task)[trial] for trial in values]]
        }

    def trial_scores(self, key: Key) -> dict[int, tuple[int, Fraction]]:
        """The tasks that are complete in each repetition of the evaluation, and the score over them."""
        values = self.trial_values(key).values()
        by_trial = {trial: [each[trial] for each in values if trial in each] for trial in MODELS[key[1]]}
        return {trial: (len(found), clip(key, mean(found))) for trial, found in by_trial.items() if found}

    def n_full(self, key: Key) -> int:
        """Tasks that are complete in every trial."""
        return sum(len(values) == len(MODELS[key[1]]) for values in self.trial_values(key).values())

    def figure(self, key: Key) -> Figure:
        """A leaderboard's row."""
        name, wanted, values = key[-1], self.wanted(key), self.task_values(key)
        every = [each for task in wanted for each in self.responses_to(key, task).values()]
        met = self.met_of(key).values()
        n_judged = sum(n for _, n in met)
        return Figure(
            n_tasks=len(values),
            n_tasks_full=self.n_full(key),
            n_tasks_wanted=len(wanted),
            is_complete=self.n_full(key) == len(wanted),
            coverage=Fraction(sum(each.n_decided for each in every), sum(each.n_wanted for each in every)),
            mean_score=clip(key, mean(values.values())) if values else None,
            raw_mean_score=mean(values.values()) if values else None,
            # Each task is wanted in as many trials as any other, so the mean over responses is the mean over tasks.
            mean_lower=clip(key, mean([each.lower[name] for each in every])),
            mean_upper=clip(key, mean([each.upper[name] for each in every])),
            met_share=Fraction(sum(n for n, _ in met), n_judged) if n_judged else None,
            n_judged=n_judged or None,
        )


def mean(values: Iterable[Fraction]) -> Fraction:
    """The exact mean."""
    listed = list(values)
    return sum(listed, Fraction(0)) / len(listed)


def clip(key: Key, value: Fraction) -> Fraction:
    """Equation 2 shows a mean below zero as zero; equation 4 does not."""
    return max(Fraction(0), value) if key[-1] == "score" else value
