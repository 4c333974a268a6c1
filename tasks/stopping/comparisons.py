"""The comparisons of a job, their progress, and the tasks that they no longer need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import Any, NamedTuple

from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS, Stopping
from tasks.rules.stopping import METHOD, OPEN, Rule, alpha_of_each, block_ends, task_order
from warehouse import Reader, Row
from warehouse.files import hash_of_document

EARLIER = "earlier nights"
"""Stands for the vintage of the first side if a night is compared with the latest earlier value of
each task, which may come from several vintages.
"""


class ComparedModel(NamedTuple):
    """One side of a comparison: a configured model in a vintage."""

    model: str
    config_hash: str
    vintage: str


PairOnTasks = tuple[ComparedModel, ComparedModel, tuple[str, ...]]
"""First side, second side, and the tasks on which they can be compared, in their random order."""


class PlannedComparison(NamedTuple):
    """Two sides that are compared on tasks in a fixed order; a difference is second minus first.

    Of a night and earlier nights, the earlier ones are first, so that a drop is negative.
    """

    first_side: ComparedModel
    second_side: ComparedModel
    rule: Rule
    order: tuple[str, ...]

    @property
    def is_of_nights(self) -> bool:
        """True if a night is compared with earlier nights."""
        return self.first_side.vintage == EARLIER

    @property
    def stored_sides(self) -> tuple[ComparedModel, ComparedModel]:
        """The sides in the order of the stored columns: first and second, but the other way round
        for nights, because a night is the model that a look is about.
        """
        if self.is_of_nights:
            return self.second_side, self.first_side
        return self.first_side, self.second_side

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a look that identify the comparison."""
        side, compared_side = self.stored_sides
        return {
            "model": side.model,
            "model_config_hash": side.config_hash,
            "vintage": side.vintage,
            "compared_model": compared_side.model,
            "compared_config_hash": compared_side.config_hash,
            "compared_vintage": compared_side.vintage,
        }

    @property
    def evaluated_sides(self) -> tuple[ComparedModel, ...]:
        """The sides whose evaluation it needs."""
        return (self.second_side,) if self.is_of_nights else (self.first_side, self.second_side)

    @property
    def labels(self) -> set[str]:
        """The labels of the models whose evaluation it needs."""
        return {side.model for side in self.evaluated_sides}

    def tasks_until(self, block: int) -> tuple[str, ...]:
        """Return the tasks up to the end of a block, counted from 1; none for 0."""
        n_tasks = self.rule.ends[block - 1] if block else 0
        return self.order[:n_tasks]


class Progress(NamedTuple):
    """How far a comparison is: the block of its last look (0: none yet), and its decision then."""

    comparison: PlannedComparison
    block: int = 0
    decision: str = OPEN

    @property
    def is_finished(self) -> bool:
        """True if no more tasks are needed: it is decided, or all tasks are evaluated."""
        return self.decision != OPEN or self.block >= len(self.comparison.rule.ends)

    @property
    def evaluated_tasks(self) -> tuple[str, ...]:
        """The tasks in its last look, including those without a value."""
        return self.comparison.tasks_until(self.block)

    @property
    def unneeded_tasks(self) -> frozenset[str]:
        """The tasks that it does not need; none as long as it is not finished."""
        if not self.is_finished:
            return frozenset()
        return frozenset(self.comparison.order[len(self.evaluated_tasks) :])


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
    judge: Row
    score_name: str
    fields: Mapping[str, str]
    progress: tuple[Progress, ...]
    stopping_id: str

    @cached_property
    def left_out(self) -> dict[str, frozenset[str]]:
        """By model, the tasks that none of its comparisons needs, if all of them are finished."""
        unneeded_tasks: dict[str, frozenset[str]] = {}
        for state in self.progress:
            unneeded = state.unneeded_tasks
            for label in state.comparison.labels:
                # The intersection over all comparisons of the model, starting with the first one.
                unneeded_tasks[label] = unneeded_tasks.get(label, unneeded) & unneeded
        return {label: task_ids for label, task_ids in unneeded_tasks.items() if task_ids}

    @property
    def score_parameters(self) -> dict[str, Any]:
        """The query parameters that define the scores that are compared."""
        return {**self.key, **self.judge, "score": self.score_name}


NO_COMPARISONS = JobComparisons(
    key={},
    judge={},
    score_name="",
    fields={},
    progress=(),
    stopping_id="",
)
"""The comparisons of a job that evaluates all tasks."""


def comparisons_of(
    job: Job,
    reader: Reader,
    *,
    stopping: Stopping,
    task_ids: Sequence[str],
    judge: Row,
    score_name: str,
    config_hashes: Mapping[str, str],
) -> JobComparisons:
    """Return the comparisons of a job with their progress.

    Args:
        job: the job.
        reader: of the job's warehouse.
        stopping: the job's settings of its comparisons.
        task_ids: the wanted tasks.
        judge: the columns that identify the judge configuration whose scores are compared.
        score_name: the score that is compared.
        config_hashes: label -> configuration hash, for each model that may be compared.
    """
    key = job.key
    tasks = reader.select("tasks", "task_id, field", **key, task_id=list(task_ids))
    fields = {row["task_id"]: row["field"] or "" for row in tasks}
    sides = {
        model.label: ComparedModel(model.label, config_hashes[model.label], job.vintage_of(model))
        for model in job.compared_models or job.settings.models
    }
    if stopping.pairs == EARLIER_NIGHTS:
        parameters = {**key, **judge, "score": score_name}
        pairs = _pairs_of_nights(job, stopping, sides, fields, parameters, reader)
    else:
        pairs = _pairs_of_models(stopping, sides, fields)
    comparisons = _comparisons_of_pairs(stopping, pairs)
    hashed_comparisons = []
    for comparison in comparisons:
        side_columns = [side._asdict() for side in comparison.stored_sides]
        hashed_comparisons.append([*side_columns, comparison.order])
    stopping_id = hash_of_document(
        [
            METHOD,
            key,
            judge,
            score_name,
            stopping.model_dump(mode="json"),
            job.trials,
            hashed_comparisons,
        ]
    )
    return JobComparisons(
        key=key,
        judge=judge,
        score_name=score_name,
        fields=fields,
        progress=_progress(comparisons, stopping_id, reader),
        stopping_id=stopping_id,
    )


def _pairs_of_models(
    stopping: Stopping,
    sides: Mapping[str, ComparedModel],
    fields: Mapping[str, str],
) -> list[PairOnTasks]:
    """Return all pairs of models, or the configured ones of which both models are compared."""
    order = tuple(task_order(fields, str(stopping.seed)))
    if isinstance(stopping.pairs, str):
        label_pairs = list(combinations(sides, 2))
    else:
        label_pairs = [pair for pair in stopping.pairs if sides.keys() >= set(pair)]
    return [(sides[label], sides[compared_label], order) for label, compared_label in label_pairs]


def _pairs_of_nights(
    job: Job,
    stopping: Stopping,
    sides: Mapping[str, ComparedModel],
    fields: Mapping[str, str],
    score_parameters: Mapping[str, Any],
    reader: Reader,
) -> list[PairOnTasks]:
    """Return pairs of each nightly model's earlier values and its own of this night.

    Only tasks with an earlier value count. Outside a night, no model is compared.
    """
    if not job.night:
        return []
    pairs = []
    for model in job.compared_models or job.settings.models:
        if model.resample != "nightly":
            continue
        tonight = sides[model.label]
        values = earlier_values(reader, score_parameters, tonight)
        compared_fields = {task_id: field for task_id, field in fields.items() if task_id in values}
        if compared_fields:
            # Each night draws an order of its own, so that over the nights all tasks are evaluated
            # again.
            order = tuple(task_order(compared_fields, f"{stopping.seed} {job.night}"))
            pairs.append((tonight._replace(vintage=EARLIER), tonight, order))
    return pairs


def earlier_values(
    reader: Reader,
    score_parameters: Mapping[str, Any],
    tonight: ComparedModel,
) -> dict[str, float]:
    """Return by task the value of a model in the latest earlier night, or in its base sampling."""
    parameters = {
        **score_parameters,
        "model": tonight.model,
        "model_config_hash": tonight.config_hash,
        "night": tonight.vintage,
    }
    rows = reader.query("queries/stopping/earlier_values", parameters)
    return {row["task_id"]: row["value"] for row in rows}


def _comparisons_of_pairs(
    stopping: Stopping, pairs: Sequence[PairOnTasks]
) -> list[PlannedComparison]:
    """Return the comparisons of pairs, which share the probability of a false decision."""
    alpha = alpha_of_each(stopping.alpha, len(pairs))
    comparisons = []
    for first_side, second_side, order in pairs:
        rule = Rule(
            claim="dropped" if stopping.pairs == EARLIER_NIGHTS else "different",
            alpha=alpha,
            least_difference=stopping.least_difference,
            ends=block_ends(len(order), stopping.block),
        )
        comparisons.append(PlannedComparison(first_side, second_side, rule, order))
    return comparisons


_sides_in = itemgetter("model", "vintage", "compared_model", "compared_vintage")
"""Takes the columns of a look, and returns those that tell its comparison from others of the job.

The configuration hashes are not among them, because the stopping id already depends on them.
"""


def _progress(
    comparisons: Sequence[PlannedComparison],
    stopping_id: str,
    reader: Reader,
) -> tuple[Progress, ...]:
    """Return the progress of each comparison, from its stored looks."""
    looks = reader.select("stopping_looks", order="block", stopping_id=stopping_id)
    # The last block's look replaces those before it.
    last_looks = {_sides_in(look): look for look in looks}
    progress = []
    for comparison in comparisons:
        look = last_looks.get(_sides_in(comparison.columns))
        if look is None:
            progress.append(Progress(comparison))
        else:
            progress.append(Progress(comparison, look["block"], look["decision"]))
    return tuple(progress)
