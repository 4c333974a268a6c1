"""Coverage: of what a job wants, what is there, what failed and what is missing."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import sql
from tasks.config import Job
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.rules.verdict import DECIDED
from tasks.run.judgings import judgings
from tasks.run.missing_work import WantedTasks, imported_models, model_hashes, wanted_tasks
from warehouse import Reader, Warehouse


@dataclass
class Covered:
    """One model's cells in one trial: its responses (no `judge`), or its verdicts by one judge in one judge trial."""

    model: str
    vintage: str
    trial: int
    judge: str | None
    judge_trial: int | None
    wanted: int
    done: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def model_name(self) -> str:
        """The model, with its vintage where it is not the base vintage."""
        return self.model if self.vintage == BASE_VINTAGE else f"{self.model} of {self.vintage}"

    @property
    def missing(self) -> int:
        """Cells that nothing is stored for."""
        return self.wanted - self.done - sum(self.failures.values())

    @property
    def share(self) -> float:
        """Done / wanted; 1 where nothing is wanted."""
        return self.done / self.wanted if self.wanted else 1.0


def coverage(job: Job) -> list[Covered]:
    """The coverage matrix of a job: responses by model and trial, verdicts by model, trial, judge and judge trial.

    Models that only imported responses have are in it too, unless models are named.
    """
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        models = _models(job, wanted, reader)
        n_wanted = _wanted(job, wanted, reader, models)
        return _responses(job, wanted, reader, models, n_wanted) + _verdicts(job, wanted, reader, models, n_wanted)


_Wanted = dict[tuple[str, int], tuple[int, int]]
"""(model, trial) -> how many responses and verdicts."""


@dataclass(frozen=True)
class _Counted:
    """What counts for a model label: the configuration hashes of its responses, and their vintage."""

    config_hashes: tuple[str, ...]
    vintage: str

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether a row of figures is about such responses."""
        return row["model_config_hash"] in self.config_hashes and row["vintage"] == self.vintage


def _models(job: Job, wanted: WantedTasks, reader: Reader) -> dict[str, _Counted]:
    hashes = model_hashes(job)
    found = {
        model.label: _Counted((hashes[model.label], IMPORTED), job.vintage_of(model)) for model in job.settings.models
    }
    for label in imported_models(job, wanted, reader):
        found.setdefault(label, _Counted((IMPORTED,), job.vintage))
    return found


def _wanted(job: Job, wanted: WantedTasks, reader: Reader, models: dict[str, _Counted]) -> _Wanted:
    """How many responses and verdicts are wanted, by model and trial.

    A configured or named model is to answer every wanted task; of a model that only imported responses have,
    these are all there is to want.
    """
    key = {**wanted.key, "tasks": list(wanted.task_ids)}
    tasks = reader.rows(sql.read("questions/run/wanted_size"), key)[0]
    trials = {"is_any_trial": job.named_trials is None, "trials": list(job.trials)}
    given = reader.rows(sql.read("questions/run/imported_answers"), {**key, **trials, "vintage": job.vintage})
    labels = {*model_hashes(job), *(job.named_models or ())}
    n_wanted = {
        (model, trial): (tasks["n_tasks"], tasks["n_criteria"])
        for model in models
        if model in labels
        for trial in job.trials
    }
    for row in given:
        if row["model"] in models and models[row["model"]].vintage == job.vintage:
            n_wanted.setdefault((row["model"], row["trial"]), (row["n_tasks"], row["n_criteria"]))
    return n_wanted


def _responses(
    job: Job, wanted: WantedTasks, reader: Reader, models: dict[str, _Counted], n_wanted: _Wanted
) -> list[Covered]:
    cells = {
        (model, trial): Covered(model, models[model].vintage, trial, None, None, n_tasks)
        for (model, trial), (n_tasks, _) in n_wanted.items()
    }
    given = {**wanted.key, "vintages": job.vintages, "tasks": list(wanted.task_ids)}
    rows = reader.rows(sql.read("questions/run/response_coverage"), given)
    for row in rows:
        cell = cells.get((row["model"], row["trial"]))
        if cell and models[row["model"]].holds(row):
            _count(cell, row["status"], row["n"], is_done=row["status"] == "ok")
    return list(cells.values())


def _verdicts(
    job: Job, wanted: WantedTasks, reader: Reader, models: dict[str, _Counted], n_wanted: _Wanted
) -> list[Covered]:
    found: list[Covered] = []
    configured = [judging.columns for judging in judgings(job, wanted.benchmark)]
    for columns in configured + _imported_judgings(job, wanted, reader):
        cells = {
            (model, trial): Covered(
                model, models[model].vintage, trial, columns["judge"], columns["judge_trial"], n_criteria
            )
            for (model, trial), (_, n_criteria) in n_wanted.items()
        }
        parameters = {**wanted.key, "vintages": job.vintages, "tasks": list(wanted.task_ids), **columns}
        for row in reader.rows(sql.read("questions/run/verdict_coverage"), parameters):
            cell = cells.get((row["model"], row["trial"]))
            if cell and models[row["model"]].holds(row) and row["status"] != "not_judged":
                _count(cell, row["status"], row["n"], is_done=row["status"] in DECIDED)
        # What was judged elsewhere is shown, not wanted.
        found += [cell for cell in cells.values() if columns in configured or cell.missing < cell.wanted]
    return found


def _imported_judgings(job: Job, wanted: WantedTasks, reader: Reader) -> list[dict[str, Any]]:
    """The judgings of imported verdicts, unless judges are named and theirs is not among them."""
    rows = reader.rows(sql.read("questions/run/imported_judgings"), {**wanted.key, "vintages": job.vintages})
    return [row for row in rows if job.named_judges is None or row["judge"] in job.named_judges]


def _count(cell: Covered, status: str, number: int, *, is_done: bool) -> None:
    if is_done:
        cell.done += number
    else:
        cell.failures[status] += number
