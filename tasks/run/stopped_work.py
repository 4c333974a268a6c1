"""Which comparisons a job with `stopping` is to settle, how far they are, and which work none of them needs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.models import Model
from tasks.config.settings import EARLIER_NIGHTS
from tasks.rules.stopping import METHOD, OPEN, Asked, Rule, alpha_of_each, block_ends, task_order
from tasks.run.judgings import Judging, judgings, model_hash
from warehouse import Reader

EARLIER = "earlier nights"
"""What stands for the vintage where a night is compared with the latest earlier value of each task."""


@dataclass(frozen=True)
class Compared:
    """One side of a comparison: a configured model in a vintage."""

    model: str
    config_hash: str
    vintage: str


@dataclass(frozen=True)
class Comparison:
    """Two sides that are compared on tasks in a fixed order; the difference is the first minus the second."""

    first: Compared
    second: Compared
    rule: Rule
    order: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies it among those of a job."""
        return (self.first.model, self.first.vintage, self.second.model, self.second.vintage)

    @property
    def labels(self) -> set[str]:
        """The labels of the models whose evaluation it needs."""
        return {side.model for side in (self.first, self.second) if side.vintage != EARLIER}


@dataclass(frozen=True)
class Progress:
    """How far a comparison is: its last look, block 0 where there is none, and what that decided."""

    comparison: Comparison
    block: int = 0
    decision: str = OPEN

    @property
    def is_settled(self) -> bool:
        """Whether no more tasks are needed: it is decided, or all tasks are evaluated."""
        return self.decision != OPEN or self.block >= len(self.comparison.rule.ends)

    @property
    def n_tasks(self) -> int:
        """The tasks that its last look rests on, with those that have no value."""
        return self.comparison.rule.ends[self.block - 1] if self.block else 0


@dataclass(frozen=True)
class StoppingPlan:
    """All comparisons of a job; `stopping_id` changes with anything that they rest on."""

    judging: Judging
    score_name: str
    comparisons: tuple[Comparison, ...]
    facts: str

    @cached_property
    def stopping_id(self) -> str:
        """The hash of all that the comparisons rest on."""
        return hashlib.sha256(self.facts.encode()).hexdigest()

    def progress(self, reader: Reader) -> list[Progress]:
        """How far each comparison is, by what is stored; a decision stands once it is made."""
        looks = reader.select("stopping_looks", order="block", stopping_id=self.stopping_id)
        last = {(row["model"], row["vintage"], row["compared_model"], row["compared_vintage"]): row for row in looks}
        return [
            Progress(each, last[each.key]["block"], last[each.key]["decision"]) if each.key in last else Progress(each)
            for each in self.comparisons
        ]


def stopping_plan(
    job: Job, benchmark: Benchmark, revision: str, task_ids: Sequence[str], reader: Reader
) -> StoppingPlan | None:
    """The comparisons of a job on its wanted tasks; None where it has none, or no judge was chosen."""
    stopping, judged = job.settings.stopping, judgings(job, benchmark)
    if stopping is None or not judged or not task_ids:
        return None
    key = {"benchmark": benchmark.name, "dataset_revision": revision}
    score = benchmark.primary_score.score_name
    fields = fields_of(key, task_ids, reader)
    if stopping.pairs == EARLIER_NIGHTS:
        given = key | judged[0].columns | {"score": score}
        pairs = _with_earlier_nights(job, fields, given, reader)
    else:
        pairs = _pairs(job, tuple(task_order(fields, str(stopping.seed))))
    alpha = alpha_of_each(stopping.alpha, len(pairs))
    asked: Asked = "dropped" if stopping.pairs == EARLIER_NIGHTS else "different"
    comparisons = tuple(
        Comparison(a, b, Rule(asked, alpha, stopping.least_difference, block_ends(len(order), stopping.block)), order)
        for a, b, order in pairs
    )
    sides = [[vars(each.first), vars(each.second), each.order] for each in comparisons]
    facts = [METHOD, key, judged[0].columns, score, stopping.model_dump(mode="json"), job.trials, sides]
    return StoppingPlan(judged[0], score, comparisons, json.dumps(facts, sort_keys=True))


def left_out(
    job: Job, benchmark: Benchmark, revision: str, task_ids: Sequence[str], reader: Reader
) -> Mapping[str, frozenset[str]]:
    """Model -> the tasks that none of its comparisons needs, which are all settled; none of a model without any."""
    plan = stopping_plan(job, benchmark, revision, task_ids, reader)
    return {} if plan is None else left_out_of(plan.progress(reader))


def left_out_of(progress: Sequence[Progress]) -> dict[str, frozenset[str]]:
    """Model -> the tasks that none of its comparisons needs, by how far these are."""
    found: dict[str, frozenset[str]] = {}
    for each in progress:
        beyond = frozenset(each.comparison.order[each.n_tasks :]) if each.is_settled else frozenset()
        for label in each.comparison.labels:
            found[label] = found[label] & beyond if label in found else beyond
    return {label: tasks for label, tasks in found.items() if tasks}


def fields_of(key: Mapping[str, str], task_ids: Sequence[str], reader: Reader) -> dict[str, str]:
    """Task -> its field, which is its stratum."""
    rows = reader.select("tasks", "task_id, field", **key, task_id=list(task_ids))
    return {row["task_id"]: row["field"] or "" for row in rows}


_Pair = tuple[Compared, Compared, tuple[str, ...]]


def _pairs(job: Job, order: tuple[str, ...]) -> list[_Pair]:
    assert job.settings.stopping is not None
    models, pairs = _models(job), job.settings.stopping.pairs
    labels = list(models)
    if isinstance(pairs, str):
        chosen = [(a, b) for place, a in enumerate(labels) for b in labels[place + 1 :]]
    else:
        chosen = [(a, b) for a, b in pairs if {a, b} <= set(labels)]
    return [(_side(job, models[a]), _side(job, models[b]), order) for a, b in chosen]


def _with_earlier_nights(job: Job, fields: Mapping[str, str], given: Mapping[str, Any], reader: Reader) -> list[_Pair]:
    """Each nightly model beside its own earlier values, on the tasks that have one; none outside a night."""
    assert job.settings.stopping is not None
    if job.night is None:
        return []
    found: list[_Pair] = []
    for model in _models(job).values():
        if model.resample != "nightly":
            continue
        tonight = _side(job, model)
        values = earlier_values(reader, given, tonight)
        have_one = {task_id: field for task_id, field in fields.items() if task_id in values}
        if have_one:
            # Each night draws an order of its own, so that over the nights all tasks are evaluated again.
            order = task_order(have_one, f"{job.settings.stopping.seed} {job.night}")
            found.append((tonight, Compared(tonight.model, tonight.config_hash, EARLIER), tuple(order)))
    return found


def earlier_values(reader: Reader, given: Mapping[str, Any], tonight: Compared) -> dict[str, float]:
    """Task -> the value that a model had in the latest night before, or in its base sampling.

    `given` are the benchmark, its revision, a judging and a score.
    """
    side = {"model": tonight.model, "model_config_hash": tonight.config_hash, "night": tonight.vintage}
    rows = reader.rows(sql.read("queries/stopping/earlier_values"), {**given, **side})
    return {row["task_id"]: row["value"] for row in rows}


def _models(job: Job) -> dict[str, Model]:
    return {model.label: model for model in job.compared_models or job.settings.models}


def _side(job: Job, model: Model) -> Compared:
    return Compared(model.label, model_hash(model), job.vintage_of(model))
