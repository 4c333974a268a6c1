"""Coverage: the wanted cells of a job that are done, failed and missing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sql
from tasks.config.job import Job
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.rules.verdict import DECIDED
from tasks.run.judge_configs import judge_configs
from tasks.run.missing_work import imported_models, model_hashes, wanted_tasks
from warehouse import Reader, Warehouse


@dataclass
class CoverageCell:
    """One model's cells in one trial: its responses (no `judge`), or its verdicts by one judge in one judge trial.

    `wanted` are the cells of all tasks, as on the leaderboard. `due` are those that a run can fill: all of them, or for
    a model that is imported those of its responses. `skipped` are empty cells that are not wanted, because the
    comparisons of the model are decided (`stopping`).
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


def coverage(job: Job, *, only_stored: bool = False) -> list[CoverageCell]:
    """Return the coverage matrix of a job.

    It has responses by model and trial, and verdicts by model, trial, judge and judge trial. Models that only imported
    responses have are in it where they are named, or no model is configured. With `only_stored` it is about the models
    and judges that something stored has, instead of the configured ones.
    """
    if only_stored:
        job = job.model_copy(update={"settings": job.settings.model_copy(update={"models": (), "judges": ()})})
    with Warehouse(job.warehouse).reader() as reader:
        return _Matrix(job, reader, only_stored).covered()


_Row = Mapping[str, Any]
_Due = dict[tuple[str, int], tuple[int, int]]
"""By model and trial: how many responses and verdicts are due."""


class _Counted(NamedTuple):
    """The responses that count for a model label: their configuration hashes, and their vintage."""

    config_hashes: tuple[str, ...]
    vintage: str

    def holds(self, row: _Row) -> bool:
        """Return whether a row of figures is on such responses."""
        return row["model_config_hash"] in self.config_hashes and row["vintage"] == self.vintage


class _Matrix:
    """The coverage matrix: the wanted cells of each model and judge configuration, and their state."""

    def __init__(self, job: Job, reader: Reader, only_stored: bool) -> None:
        self._job, self._reader, self._only_stored = job, reader, only_stored
        self._wanted = wanted_tasks(job, reader)
        # The vintages that count, the one that matters most first.
        of_night = only_stored and job.night is not None
        self._vintages = list(dict.fromkeys((job.night, job.vintage))) if of_night else job.vintages
        tasks = reader.select("tasks", task_id=list(self._wanted.task_ids), **self._wanted.key)
        self._n_criteria = {row["task_id"]: row["n_criteria"] for row in tasks}
        self._models = self._counted()

    def covered(self) -> list[CoverageCell]:
        """Return the cells of responses, then those of verdicts under each judge configuration."""
        responses = self._rows("response_coverage", tasks=list(self._wanted.task_ids))
        due = self._due(responses)
        cells = self._cells(due, None, responses)
        configured = [judge_config.columns for judge_config in judge_configs(self._job, self._wanted.benchmark)]
        # Stored ones that are not configured, unless judges are named and theirs is not among them.
        of_others = {"is_any_source": self._only_stored, "judges": list(self._job.named_judges or ())}
        for each in configured + self._rows("stored_judge_configs", **of_others):
            verdicts = self._rows("verdict_coverage", tasks=list(self._wanted.task_ids), **each)
            of_judge = self._cells(due, each, verdicts)
            # Verdicts that were made elsewhere are shown, not wanted.
            cells += [cell for cell in of_judge if each in configured or cell.missing < cell.wanted]
        return cells

    def _rows(self, query: str, **given: Any) -> list[dict[str, Any]]:
        of = {**self._wanted.key, "vintages": self._vintages, **given}
        return self._reader.rows(sql.read(f"queries/run/{query}"), of)

    def _counted(self) -> dict[str, _Counted]:
        job, hashes = self._job, model_hashes(self._job)
        counted = {
            model.label: _Counted((hashes[model.label], IMPORTED), job.vintage_of(model))
            for model in job.settings.models
        }
        if self._only_stored:
            stored = sorted(self._rows("stored_models"), key=lambda row: self._vintages.index(row["vintage"]))
            for row in stored:
                if job.named_models is None or row["model"] in job.named_models:
                    counted.setdefault(row["model"], _Counted((row["model_config_hash"],), row["vintage"]))
            return counted
        for label in imported_models(job, self._wanted, self._reader):
            counted.setdefault(label, _Counted((IMPORTED,), job.vintage))
        return counted

    def _due(self, responses: Iterable[_Row]) -> _Due:
        """Return how many responses and verdicts are due, by model and trial: those of all wanted tasks.

        If all responses of a model are imported, no others are due. A model that is configured as imported has none due
        in a trial without imports. A run judges only the trials that it wants; all stored ones are shown.
        """
        job, size = self._job, (len(self._n_criteria), sum(self._n_criteria.values()))
        sampled = [model.label for model in job.settings.models if not model.is_imported]
        due: _Due = {(label, trial): size for label in sampled for trial in job.trials}
        is_any_trial, there = self._only_stored and job.named_trials is None, Counter[tuple[str, int, str]]()
        for row in responses:
            counted, trial = self._models.get(row["model"]), row["trial"]
            is_wanted = (self._only_stored or row["source"] == IMPORTED) and (is_any_trial or trial in job.trials)
            if is_wanted and counted is not None and counted.vintage == row["vintage"]:
                there[row["model"], trial, "n"] += row["n"]
                there[row["model"], trial, "n_criteria"] += row["n_criteria"]
        for label, trial in sorted({(label, trial) for label, trial, _ in there}):
            due.setdefault((label, trial), (there[label, trial, "n"], there[label, trial, "n_criteria"]))
        for model in job.settings.models:
            for trial in job.trials:
                due.setdefault((model.label, trial), (0, 0))
        return due

    def _cells(self, due: _Due, judge_config: _Row | None, rows: Iterable[_Row]) -> list[CoverageCell]:
        """Return the cells of responses, or those of verdicts under a judge configuration."""
        judge, judge_trial = (
            (None, None) if judge_config is None else (judge_config["judge"], judge_config["judge_trial"])
        )
        sizes = dict.fromkeys(self._n_criteria, 1) if judge_config is None else self._n_criteria
        of = 0 if judge_config is None else 1
        cells = {
            (model, trial): CoverageCell(
                model, self._models[model].vintage, trial, judge, judge_trial, sum(sizes.values()), n_due[of]
            )
            for (model, trial), n_due in due.items()
        }
        for row in rows:
            cell = cells.get((row["model"], row["trial"]))
            if cell is None or not self._models[cell.model].holds(row) or row["status"] == "not_judged":
                continue
            if row["status"] in {OK, *DECIDED}:
                cell.done += row["n"]
            else:
                cell.failures[row["status"]] += row["n"]
        # Empty cells that no comparison needs count as skipped, not as wanted.
        for model, tasks in self._wanted.left_out.items():
            query = "response_coverage" if judge_config is None else "verdict_coverage"
            there = Counter[int]()
            for row in self._rows(query, tasks=sorted(tasks), **(judge_config or {})):
                if row["model"] == model and self._models[model].holds(row) and row["status"] != "not_judged":
                    there[row["trial"]] += row["n"]
            for cell in (cell for cell in cells.values() if cell.model == model):
                cell.skipped = sum(sizes[task_id] for task_id in tasks) - there[cell.trial]
                cell.wanted -= cell.skipped
                cell.due -= cell.skipped
        return list(cells.values())
