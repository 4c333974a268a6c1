"""The comparisons of a job, their progress, and the tasks that they no longer need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import sql
from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS
from tasks.rules.stopping import METHOD, OPEN, Claim, Rule, alpha_of_each, block_ends, task_order
from warehouse import Reader
from warehouse.files import hash_of_document

EARLIER = "earlier nights"
"""The vintage of the first side if a night is compared with the latest earlier value of each task.
"""


class ComparedModel(NamedTuple):
    """One side of a comparison: a configured model in a vintage."""

    model: str
    config_hash: str
    vintage: str


class PlannedComparison(NamedTuple):
    """Two sides that are compared on tasks in a fixed order; a difference is second minus first.

    Of a night and earlier nights, the earlier ones are first, so that a drop is negative.
    """

    first: ComparedModel
    second: ComparedModel
    rule: Rule
    order: tuple[str, ...]

    @property
    def stored_sides(self) -> tuple[ComparedModel, ComparedModel]:
        """The sides in the order of the stored columns: a night is stored before the earlier ones."""
        if self.first.vintage == EARLIER:
            return self.second, self.first
        return self.first, self.second

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a look that identify the comparison."""
        model, compared = self.stored_sides
        return {
            "model": model.model,
            "model_config_hash": model.config_hash,
            "vintage": model.vintage,
            "compared_model": compared.model,
            "compared_config_hash": compared.config_hash,
            "compared_vintage": compared.vintage,
        }

    @property
    def labels(self) -> set[str]:
        """The labels of the models whose evaluation it needs."""
        return {side.model for side in (self.first, self.second) if side.vintage != EARLIER}


class Progress(NamedTuple):
    """The progress of a comparison: the block of its last look (0: no look yet), and the decision
    of that look.
    """

    comparison: PlannedComparison
    block: int = 0
    decision: str = OPEN

    @property
    def is_finished(self) -> bool:
        """True if no more tasks are needed: it is decided, or all tasks are evaluated."""
        return self.decision != OPEN or self.block >= len(self.comparison.rule.ends)

    @property
    def n_tasks(self) -> int:
        """The number of tasks in its last look, including those without a value."""
        return self.comparison.rule.ends[self.block - 1] if self.block else 0


@dataclass(frozen=True)
class JobComparisons:
    """All comparisons of a job, with their progress when they were read.

    Attributes:
        key: the columns of the data set: benchmark and revision.
        judge: the columns that identify the judge configuration whose scores are compared.
        score_name: the score that is compared.
        fields: task id -> its field, for all wanted tasks.
        progress: the progress of each comparison.
        stopping_id: a hash that changes with anything that the comparisons depend on.
    """

    key: Mapping[str, str]
    judge: Mapping[str, Any]
    score_name: str
    fields: Mapping[str, str]
    progress: tuple[Progress, ...]
    stopping_id: str

    @cached_property
    def left_out(self) -> dict[str, frozenset[str]]:
        """By model, the tasks that none of its comparisons needs, if all of them are finished."""
        return left_out_of(self.progress)


NO_COMPARISONS = JobComparisons({}, {}, "", {}, (), "")


def comparisons_of(
    job: Job,
    reader: Reader,
    *,
    task_ids: Sequence[str],
    judge: Mapping[str, Any],
    score_name: str,
    config_hashes: Mapping[str, str],
) -> JobComparisons:
    """Return the comparisons of a job with `stopping`.

    Args:
        job: the job.
        reader: of the job's warehouse.
        task_ids: the wanted tasks.
        judge: the columns that identify the judge configuration whose scores are compared.
        score_name: the score that is compared.
        config_hashes: label -> configuration hash, for each model that may be compared.
    """
    stopping = job.settings.stopping
    assert stopping is not None
    key = job.key
    fields = _fields_of(key, task_ids, reader)
    models = job.compared_models or job.settings.models
    sides = {
        model.label: ComparedModel(model.label, config_hashes[model.label], job.vintage_of(model))
        for model in models
    }
    if stopping.pairs == EARLIER_NIGHTS:
        given = key | dict(judge) | {"score": score_name}
        # Outside a night, no model is compared.
        nightly = [
            sides[model.label] for model in models if job.night and model.resample == "nightly"
        ]
        pairs = list(
            _with_earlier_nights(nightly, fields, f"{stopping.seed} {job.night}", given, reader)
        )
    else:
        order = tuple(task_order(fields, str(stopping.seed)))
        chosen = (
            list(combinations(sides, 2))
            if isinstance(stopping.pairs, str)
            else list(stopping.pairs)
        )
        pairs = [(sides[a], sides[b], order) for a, b in chosen if {a, b} <= sides.keys()]
    alpha = alpha_of_each(stopping.alpha, len(pairs))
    alternative: Claim = "dropped" if stopping.pairs == EARLIER_NIGHTS else "different"
    least = stopping.least_difference
    comparisons = tuple(
        PlannedComparison(
            a, b, Rule(alternative, alpha, least, block_ends(len(order), stopping.block)), order
        )
        for a, b, order in pairs
    )
    compared = [
        [*(side._asdict() for side in each.stored_sides), each.order] for each in comparisons
    ]
    facts = [
        METHOD,
        key,
        judge,
        score_name,
        stopping.model_dump(mode="json"),
        job.trials,
        compared,
    ]
    stopping_id = hash_of_document(facts)
    progress = _progress(comparisons, stopping_id, reader)
    return JobComparisons(key, judge, score_name, fields, progress, stopping_id)


def _progress(
    comparisons: Sequence[PlannedComparison], stopping_id: str, reader: Reader
) -> tuple[Progress, ...]:
    """Return the progress of each comparison, from its stored looks; a decision is final."""
    looks = reader.select("stopping_looks", order="block", stopping_id=stopping_id)
    last_looks = {_sides_in(look): look for look in looks}
    progress = []
    for comparison in comparisons:
        look = last_looks.get(_sides_in(comparison.columns))
        if look is None:
            progress.append(Progress(comparison))
        else:
            progress.append(Progress(comparison, look["block"], look["decision"]))
    return tuple(progress)


def _sides_in(look: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return what distinguishes a look's comparison from others of the job."""
    return look["model"], look["vintage"], look["compared_model"], look["compared_vintage"]


def left_out_of(progress: Sequence[Progress]) -> dict[str, frozenset[str]]:
    """Return by model the tasks that none of its comparisons needs, if all of them are finished."""
    left_out: dict[str, frozenset[str]] = {}
    for each in progress:
        beyond = (
            frozenset(each.comparison.order[each.n_tasks :]) if each.is_finished else frozenset()
        )
        for label in each.comparison.labels:
            left_out[label] = left_out[label] & beyond if label in left_out else beyond
    return {label: tasks for label, tasks in left_out.items() if tasks}


def _fields_of(key: Mapping[str, str], task_ids: Sequence[str], reader: Reader) -> dict[str, str]:
    """Return the field of each task, which is its stratum."""
    rows = reader.select("tasks", "task_id, field", **key, task_id=list(task_ids))
    return {row["task_id"]: row["field"] or "" for row in rows}


def _with_earlier_nights(
    nightly: Sequence[ComparedModel],
    fields: Mapping[str, str],
    seed: str,
    given: Mapping[str, Any],
    reader: Reader,
) -> Iterator[tuple[ComparedModel, ComparedModel, tuple[str, ...]]]:
    """Yield pairs of each nightly model and its own earlier values, on the tasks that have one."""
    for tonight in nightly:
        values = earlier_values(reader, given, tonight)
        have_one = {task_id: field for task_id, field in fields.items() if task_id in values}
        if have_one:
            # Each night draws an order of its own, so that over the nights all tasks are evaluated
            # again.
            order = tuple(task_order(have_one, seed))
            yield ComparedModel(tonight.model, tonight.config_hash, EARLIER), tonight, order


def earlier_values(
    reader: Reader, given: Mapping[str, Any], tonight: ComparedModel
) -> dict[str, float]:
    """Return by task the value of a model in the latest earlier night, or in its base sampling.

    `given` are the benchmark, its revision, a judge configuration and a score.
    """
    side = {
        "model": tonight.model,
        "model_config_hash": tonight.config_hash,
        "night": tonight.vintage,
    }
    rows = reader.rows(sql.read("queries/stopping/earlier_values"), {**given, **side})
    return {row["task_id"]: row["value"] for row in rows}
