"""Coverage: of what a job wants, what is there, what failed and what is missing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sql
from tasks.config.job import Job
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.rules.verdict import DECIDED
from tasks.run.judgings import judgings
from tasks.run.missing_work import WantedTasks, imported_models, model_hashes, wanted_tasks
from warehouse import Reader, Warehouse


@dataclass
class Covered:
    """One model's cells in one trial: its responses (no `judge`), or its verdicts by one judge in one judge trial.

    `wanted` are those of all tasks, as on the leaderboard. `due` are those of them that a run can fill: all, but of a
    model that only imported responses have, these. `skipped` are cells that are not wanted, because the comparisons of
    the model are settled (`stopping`), and that nothing is stored for.
    """

    model: str
    vintage: str
    trial: int
    judge: str | None
    judge_trial: int | None
    wanted: int
    due: int
    done: int = 0
    skipped: int = 0
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
        """Done / wanted, which is what leaderboards call coverage; 1 where nothing is wanted."""
        return self.done / self.wanted if self.wanted else 1.0

    @property
    def due_share(self) -> float:
        """Done / due, which the coverage bar of a run is for; 1 where nothing is due."""
        return self.done / self.due if self.due else 1.0


def coverage(job: Job, *, only_stored: bool = False) -> list[Covered]:
    """The coverage matrix of a job: responses by model and trial, verdicts by model, trial, judge and judge trial.

    Models that only imported responses have are in it where they are named, or no model is configured. With
    `only_stored` it is about the models and judges that something stored has, instead of the configured ones.
    """
    if only_stored:
        job = job.model_copy(update={"settings": job.settings.model_copy(update={"models": (), "judges": ()})})
    with Warehouse(job.warehouse).reader() as reader:
        asked = _Asked(job, wanted_tasks(job, reader), reader, only_stored)
        models = _models(asked)
        n_wanted = _wanted(asked, models)
        return _covered(asked, models, n_wanted, None) + _verdicts(asked, models, n_wanted)


class _Asked(NamedTuple):
    """What is asked, and of whom."""

    job: Job
    wanted: WantedTasks
    reader: Reader
    only_stored: bool

    @property
    def vintages(self) -> list[str]:
        """The vintages that count, the one that matters most first."""
        if self.only_stored and self.job.night is not None:
            return list(dict.fromkeys((self.job.night, self.job.vintage)))
        return self.job.vintages

    def rows(self, question: str, **given: Any) -> list[dict[str, Any]]:
        """The answer to a question about the wanted data set."""
        return self.reader.rows(sql.read(f"queries/run/{question}"), {**self.wanted.key, **given})


class _Cells(NamedTuple):
    """How many responses and verdicts of a model are wanted in a trial, and how many of them are due."""

    n_tasks: int
    n_criteria: int
    n_tasks_due: int
    n_criteria_due: int


_Wanted = dict[tuple[str, int], _Cells]
"""By model and trial."""


@dataclass(frozen=True)
class _Counted:
    """What counts for a model label: the configuration hashes of its responses, and their vintage."""

    config_hashes: tuple[str, ...]
    vintage: str

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether a row of figures is about such responses."""
        return row["model_config_hash"] in self.config_hashes and row["vintage"] == self.vintage


def _models(asked: _Asked) -> dict[str, _Counted]:
    job, hashes = asked.job, model_hashes(asked.job)
    if asked.only_stored:
        stored: dict[str, _Counted] = {}
        for vintage in asked.vintages:
            for row in asked.rows("stored_models", vintage=vintage):
                if job.named_models is None or row["model"] in job.named_models:
                    stored.setdefault(row["model"], _Counted((row["model_config_hash"],), vintage))
        return stored
    found = {
        model.label: _Counted((hashes[model.label], IMPORTED), job.vintage_of(model)) for model in job.settings.models
    }
    for label in imported_models(job, asked.wanted, asked.reader):
        found.setdefault(label, _Counted((IMPORTED,), job.vintage))
    return found


def _wanted(asked: _Asked, models: dict[str, _Counted]) -> _Wanted:
    """How many responses and verdicts are wanted, by model and trial: those of every wanted task.

    Of a model that only imported responses have no more than these are due; one that is configured as imported has none
    due in a trial that nothing was imported for.
    """
    job, task_ids = asked.job, list(asked.wanted.task_ids)
    tasks = asked.reader.select("tasks", "n_criteria", **asked.wanted.key, task_id=task_ids)
    # A run judges the trials that it wants, and no others; what is stored is shown whole.
    is_any_trial = asked.only_stored and job.named_trials is None
    of_tasks = {"tasks": task_ids, "trials": list(job.trials), "is_any_trial": is_any_trial}
    given = [
        (vintage, row)
        for vintage in (asked.vintages if asked.only_stored else [job.vintage])
        for row in asked.rows("answers_by_trial", **of_tasks, vintage=vintage, is_any_source=asked.only_stored)
    ]
    size = len(tasks), sum(row["n_criteria"] for row in tasks)
    sampled = [model.label for model in job.settings.models if not model.is_imported]
    n_wanted = {(label, trial): _Cells(*size, *size) for label in sampled for trial in job.trials}
    for vintage, row in given:
        if row["model"] in models and models[row["model"]].vintage == vintage:
            n_wanted.setdefault((row["model"], row["trial"]), _Cells(*size, row["n_tasks"], row["n_criteria"]))
    for model in job.settings.models:
        for trial in job.trials:
            n_wanted.setdefault((model.label, trial), _Cells(*size, 0, 0))
    return n_wanted


def _covered(
    asked: _Asked, models: dict[str, _Counted], n_wanted: _Wanted, judging: Mapping[str, Any] | None
) -> list[Covered]:
    """The cells of responses, or those of the verdicts of a judging."""
    judge, judge_trial = (None, None) if judging is None else (judging["judge"], judging["judge_trial"])
    cells = {}
    for (model, trial), of in n_wanted.items():
        wanted, due = (of.n_tasks, of.n_tasks_due) if judging is None else (of.n_criteria, of.n_criteria_due)
        cells[model, trial] = Covered(model, models[model].vintage, trial, judge, judge_trial, wanted, due)
    of_wanted = {"vintages": asked.vintages, "tasks": list(asked.wanted.task_ids), **(judging or {})}
    for row in asked.rows("response_coverage" if judging is None else "verdict_coverage", **of_wanted):
        cell = cells.get((row["model"], row["trial"]))
        if cell is None or not models[row["model"]].holds(row) or row["status"] == "not_judged":
            continue
        if row["status"] in {OK, *DECIDED}:
            cell.done += row["n"]
        else:
            cell.failures[row["status"]] += row["n"]
    _skip(asked, models, cells.values(), judging)
    return list(cells.values())


def _verdicts(asked: _Asked, models: dict[str, _Counted], n_wanted: _Wanted) -> list[Covered]:
    configured = [judging.columns for judging in judgings(asked.job, asked.wanted.benchmark)]
    # Those that are stored without being configured, unless judges are named and theirs is not among them.
    of_others = {"is_any_source": asked.only_stored, "judges": list(asked.job.named_judges or ())}
    others = asked.rows("stored_judgings", vintages=asked.vintages, **of_others)
    found = [(each, cell) for each in configured + others for cell in _covered(asked, models, n_wanted, each)]
    # What was judged elsewhere is shown, not wanted.
    return [cell for each, cell in found if each in configured or cell.missing < cell.wanted]


def _skip(
    asked: _Asked, models: dict[str, _Counted], cells: Iterable[Covered], judging: Mapping[str, Any] | None
) -> None:
    """Count what no comparison needs as skipped, and not as wanted: tasks without a response, or without verdicts."""
    left_out = asked.wanted.left_out
    if not left_out:
        return
    question = "skipped_responses" if judging is None else "skipped_verdicts"
    for cell in cells:
        if cell.model not in left_out:
            continue
        counted = models[cell.model]
        given = {
            "model": cell.model, "vintage": counted.vintage, "trial": cell.trial,
            "hashes": list(counted.config_hashes), "tasks": sorted(left_out[cell.model]), **(judging or {}),
        }  # fmt: skip
        cell.skipped = asked.reader.rows(sql.read(f"queries/stopping/{question}"), asked.wanted.key | given)[0]["n"]
        cell.wanted -= cell.skipped
        cell.due -= cell.skipped
