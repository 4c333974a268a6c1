"""Which of the missing calls lie among the tasks that a run that stops would still evaluate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.config.job import Job
from tasks.plan.cascades import asked_for
from tasks.rules.statistics.intervals import Floats
from tasks.run.judgings import judgings
from tasks.run.missing_work import WantedTasks, missing_responses, missing_verdicts
from tasks.run.stopped_work import Comparison
from warehouse import Reader

Cells = Sequence[tuple[str, str, int]]
"""Model, task, and how many calls are missing there."""


@dataclass
class Needed:
    """How many of the first tasks of each comparison are needed in each random order; by model."""

    n_orders: int
    of_model: dict[str, list[tuple[dict[str, int], Floats]]] = field(default_factory=dict)

    def add(self, comparison: Comparison, n_tasks: Floats) -> None:
        """Note what a comparison needs of its models."""
        places = {task_id: place for place, task_id in enumerate(comparison.order)}
        for label in comparison.labels:
            self.of_model.setdefault(label, []).append((places, n_tasks))

    def calls(self, cells: Cells) -> Floats:
        """The calls of the cells that are needed, in each random order."""
        found = np.zeros(self.n_orders)
        for label, task_id, n_calls in cells:
            found += n_calls * self._is_needed(label, task_id)
        return found

    def _is_needed(self, label: str, task_id: str) -> Floats:
        """A task that is in no comparison of a model, or a model that is in none, is evaluated in full."""
        placed = [(places[task_id], n_tasks) for places, n_tasks in self.of_model.get(label, ()) if task_id in places]
        if not placed:
            return np.ones(self.n_orders)
        return np.asarray(np.max([place < n_tasks for place, n_tasks in placed], axis=0), dtype=np.float64)


def missing_cells(job: Job, wanted: WantedTasks, reader: Reader) -> dict[tuple[str, ...], list[tuple[str, str, int]]]:
    """What is missing for each row of the plan that is a model's or a judge's, by what identifies the row."""
    criteria = {
        row["task_id"]: row["n_criteria"]
        for row in reader.rows(
            "select task_id, n_criteria from tasks where benchmark = ? and dataset_revision = ?", [*wanted.key.values()]
        )
    }
    cells: dict[tuple[str, ...], list[tuple[str, str, int]]] = {}
    to_come = []
    for model in job.settings.models:
        missing = missing_responses(job, wanted, reader, model, retry_failed=False)
        cells["sample", model.label, "", ""] = [(model.label, task_id, 1) for task_id, _ in missing]
        to_come += [(model.label, task_id, criteria[task_id]) for task_id, _ in missing]
    for judging in judgings(job, wanted.benchmark):
        unjudged = missing_verdicts(job, wanted, reader, judging, retry_failed=False)
        tasks = _tasks_of(reader, [each.response_id for each in unjudged])
        here = [(each.model, tasks[each.response_id], each.n_criteria) for each in unjudged]
        for asked in asked_for(reader, wanted, judging, unjudged):
            for cell in [*here, *to_come]:
                cells.setdefault(("judge", asked.judging.judge.label, asked.note, cell[0]), []).append(cell)
    return cells


def _tasks_of(reader: Reader, response_ids: Sequence[str]) -> Mapping[str, str]:
    query = "select response_id, task_id from responses where list_contains(?, response_id)"
    return {row["response_id"]: row["task_id"] for row in reader.rows(query, [list(response_ids)])}
