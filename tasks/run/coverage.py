"""Coverage: the wanted cells of a job that are done, failed and missing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sql
from tasks.config.job import Job
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.rules.text.numbers import coverage_text
from tasks.rules.verdict import DECIDED
from tasks.run.judge_configs import judge_configs, model_hash
from tasks.run.missing_work import imported_models, wanted_tasks
from warehouse import Reader, Warehouse


@dataclass
class CoverageCell:
    """One model's cells in one trial: its responses (no `judge`), or its verdicts by one judge in
    one judge trial.

    `wanted` are the cells of all tasks, as on the leaderboard. `due` are those that a run can fill:
    all of them or, for an imported model, those of its imported responses. `skipped` are empty
    cells that are not wanted, because the comparisons of the model are decided (`stopping`).
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
        """Done / due, which a run's coverage bar applies to; 1 where nothing is due."""
        return self.done / self.due if self.due else 1.0


def coverage(job: Job, *, only_stored: bool = False) -> list[CoverageCell]:
    """Return the coverage matrix of a job.

    It has responses by model and trial, and verdicts by model, trial, judge and judge trial. Models
    that have only imported responses are included if they are named, or if no model is configured.
    With `only_stored` the matrix has the models and judges of stored rows instead of the configured
    ones.
    """
    if only_stored:
        job = job.with_settings(models=(), judges=())
    with Warehouse(job.warehouse).reader() as reader:
        return _Matrix(job, reader, only_stored).covered()


@dataclass(frozen=True)
class LowCoverage:
    """The cells below the coverage `bar`, and the configured labels without any imported
    response.
    """

    bar: float
    cells: list[CoverageCell]
    labels_without_import: list[str]

    @property
    def lines(self) -> list[str]:
        """A sentence about each label and cell, with its causes."""
        lines = [
            f"{label}: nothing is imported under this label; `prbench import responses`"
            for label in self.labels_without_import
        ]
        return lines + self.lines_on(self.cells)

    def lines_on(self, cells: Iterable[CoverageCell]) -> list[str]:
        """Return a sentence about each of some cells, with its causes."""
        lines = []
        for cell in cells:
            of = f"verdicts of {cell.judge} on" if cell.judge else "responses of"
            causes = ", ".join(
                f"{count} {status}" for status, count in sorted(cell.failures.items())
            )
            lines.append(
                f"{of} {cell.model_name}, trial {cell.trial}: {cell.done} of {cell.due} are done"
                f" ({coverage_text(cell.due_share)}, the bar is {self.bar:.1%});"
                f" {causes or 'the rest is missing'}"
            )
        return lines


def low_coverage(job: Job, stage: str = "evaluate") -> LowCoverage:
    """Return what is below the coverage bar after a stage (or after all stages)."""
    matrix = coverage(job)
    bar = job.settings.coverage.min
    configured_judges = {judge.label for judge in job.settings.judges}
    cells = []
    for cell in matrix:
        counts = (
            cell.judge in configured_judges and stage != "sample"
            if cell.judge
            else stage != "judge"
        )
        if counts and cell.due_share < bar:
            cells.append(cell)
    covered_models = {cell.model for cell in matrix if cell.due}
    imported_labels = [model.label for model in job.settings.models if model.is_imported]
    return LowCoverage(
        bar, cells, [label for label in imported_labels if label not in covered_models]
    )


_Row = Mapping[str, Any]
_Due = Mapping[tuple[str, int], int]
"""By model and trial: how many responses, or verdicts of a judge configuration, are due."""


class _Matrix:
    """The coverage matrix: the wanted cells of each model and judge configuration, and their
    state.
    """

    def __init__(self, job: Job, reader: Reader, only_stored: bool) -> None:
        self._job = job
        self._reader = reader
        self._only_stored = only_stored
        self._wanted = wanted_tasks(job, reader)
        # The vintages that count, in order of preference.
        of_night = only_stored and job.night is not None
        self._vintages = list(dict.fromkeys((job.night, job.vintage))) if of_night else job.vintages
        tasks = reader.select("tasks", task_id=list(self._wanted.task_ids), **self._wanted.key)
        self._n_criteria = {row["task_id"]: row["n_criteria"] for row in tasks}
        self._models = self._counting_models()

    def covered(self) -> list[CoverageCell]:
        """Return the cells of responses, then those of verdicts under each judge configuration."""
        responses = self._stored(None, self._wanted.task_ids)
        cells = self._cells(None, responses, self._due(responses, len(self._n_criteria), "n"))
        due = self._due(responses, sum(self._n_criteria.values()), "n_criteria")
        configured = [
            judge_config.columns
            for judge_config in judge_configs(self._job, self._wanted.benchmark)
        ]
        # Stored judge configurations that are not configured; if judges are named, only theirs.
        of_others = {
            "is_any_source": self._only_stored,
            "judges": list(self._job.named_judges or ()),
        }
        for each in configured + self._rows(
            "stored_judge_configs", vintages=self._vintages, **of_others
        ):
            of_judge = self._cells(each, self._stored(each, self._wanted.task_ids), due)
            # Verdicts that were made elsewhere are shown, not wanted.
            cells += [cell for cell in of_judge if each in configured or cell.missing < cell.wanted]
        return cells

    def _rows(self, query: str, **given: Any) -> list[dict[str, Any]]:
        return self._reader.rows(sql.read(f"queries/run/{query}"), {**self._wanted.key, **given})

    def _counting_models(self) -> dict[str, tuple[str, set[str]]]:
        """Return, by model label, the vintage and the configuration hashes of the responses that
        count.
        """
        job = self._job
        if self._only_stored:
            stored = self._rows("stored_models", vintages=self._vintages)
            counting = {
                row["model"]: (row["vintage"], {row["model_config_hash"]}) for row in stored
            }
            return {
                label: counting[label]
                for label in counting
                if label in (job.named_models or counting)
            }
        models = {
            each.label: (job.vintage_of(each), {model_hash(each), IMPORTED})
            for each in job.settings.models
        }
        return (
            dict.fromkeys(
                imported_models(job, self._wanted, self._reader), (job.vintage, {IMPORTED})
            )
            | models
        )

    def _stored(self, judge_config: _Row | None, task_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the numbers of the responses that count, or of their verdicts under a judge
        configuration.
        """
        query = "response_coverage" if judge_config is None else "verdict_coverage"
        given = judge_config or {}
        counting = [
            f"{vintage} {each} {label}"
            for label, (vintage, hashes) in self._models.items()
            for each in hashes
        ]
        return self._rows(query, tasks=sorted(task_ids), counting=counting, **given)

    def _due(self, responses: Iterable[_Row], n_of_all: int, counted: str) -> _Due:
        """Return how many responses or verdicts are due; `counted` is the column of their number.

        Of a sampled model those of all wanted tasks are due; of an imported one only those of its
        imported responses, so none in a trial without imports. With `only_stored`, those of the
        stored responses are due, in all trials unless trials are named.
        """
        job = self._job
        models = self._job.settings.models
        due = Counter(
            {
                (each.label, trial): 0 if each.is_imported else n_of_all
                for each in models
                for trial in job.trials
            }
        )
        sampled = {each.label for each in models if not each.is_imported}
        is_any_trial = self._only_stored and job.named_trials is None
        for row in sorted(responses, key=lambda row: (row["model"], row["trial"])):
            is_wanted = is_any_trial or row["trial"] in job.trials
            if (
                is_wanted
                and row["model"] not in sampled
                and (self._only_stored or row["source"] == IMPORTED)
            ):
                due[row["model"], row["trial"]] += row[counted]
        return due

    def _cells(
        self, judge_config: _Row | None, rows: Iterable[_Row], due: _Due
    ) -> list[CoverageCell]:
        """Return the cells of responses, or those of verdicts under a judge configuration."""
        of = judge_config or {}
        sizes = self._n_criteria if of else dict.fromkeys(self._n_criteria, 1)
        n_of_all = sum(sizes.values())
        cells = {
            (model, trial): CoverageCell(
                model,
                self._models[model][0],
                trial,
                of.get("judge"),
                of.get("judge_trial"),
                n_of_all,
                n_due,
            )
            for (model, trial), n_due in due.items()
        }
        for row in rows:
            cell = cells.get((row["model"], row["trial"]))
            if cell is not None and row["status"] in {OK, *DECIDED}:
                cell.done += row["n"]
            elif cell is not None:
                cell.failures[row["status"]] += row["n"]
        # Empty cells that no comparison needs count as skipped, not as wanted.
        for model, tasks in self._wanted.left_out.items():
            there = [row for row in self._stored(judge_config, tasks) if row["model"] == model]
            for cell in (cell for cell in cells.values() if cell.model == model):
                n_stored = sum(row["n"] for row in there if row["trial"] == cell.trial)
                cell.skipped = sum(sizes[task_id] for task_id in tasks) - n_stored
                cell.wanted -= cell.skipped
                cell.due -= cell.skipped
        return list(cells.values())
