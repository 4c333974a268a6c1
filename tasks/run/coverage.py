"""Coverage: the wanted cells of a job that are done, failed and missing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tasks.config.job import Job
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.rules.text.numbers import coverage_text
from tasks.rules.verdict import DECIDED
from tasks.run.judge_configs import judge_configs, model_hash
from tasks.run.missing_work import imported_models, responses_key, wanted_tasks
from warehouse import Reader, Row, Warehouse


@dataclass
class CoverageCell:
    """A cell of the coverage matrix: a model's responses in one trial by state, or the verdicts on
    them by one judge in one judge trial. `judge` is None for responses.

    `wanted` counts those of all tasks, as on the leaderboard, without `skipped`; `due` those that a
    run can make: all wanted or, for an imported model, those of its imported responses; `skipped`
    those neither stored nor wanted, because the comparisons of the model are decided (`stopping`).
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
        """The number of wanted ones that are not stored."""
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
        return _Matrix(job, reader, only_stored).all_cells()


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
        lines = [import_line(label) for label in self.labels_without_import]
        return lines + self.lines_on(self.cells)

    def lines_on(self, cells: Iterable[CoverageCell]) -> list[str]:
        """Return a sentence about each of some cells, with its causes."""
        lines = []
        for cell in cells:
            rows = f"verdicts of {cell.judge} on" if cell.judge else "responses of"
            failures = sorted(cell.failures.items())
            causes = ", ".join(f"{count} {status}" for status, count in failures)
            lines.append(
                f"{rows} {cell.model_name}, trial {cell.trial}: {cell.done} of {cell.due} are done"
                f" ({coverage_text(cell.due_share)}, the bar is {self.bar:.1%});"
                f" {causes or 'the rest is missing'}"
            )
        return lines


def import_line(label: str) -> str:
    """Return the sentence about a configured label without any imported response."""
    return f"{label}: nothing is imported under this label; `prbench import responses`"


def low_coverage(job: Job, stage: str = "evaluate") -> LowCoverage:
    """Return what is below the coverage bar after a stage (or after all stages)."""
    matrix = coverage(job)
    bar = job.settings.coverage.min
    judges = job.settings.judge_labels
    cells = []
    for cell in matrix:
        if cell.judge:
            is_counted = cell.judge in judges and stage != "sample"
        else:
            is_counted = stage != "judge"
        if is_counted and cell.due_share < bar:
            cells.append(cell)
    covered_labels = {cell.model for cell in matrix if cell.due}
    labels_without_import = [
        model.label
        for model in job.settings.models
        if model.is_imported and model.label not in covered_labels
    ]
    return LowCoverage(bar, cells, labels_without_import)


JudgeColumns = Mapping[str, Any]
"""The columns that identify a judge configuration; empty for the responses themselves."""
TrialCounts = Counter[tuple[str, int]]
"""By model and trial: the number of responses, or of verdicts under a judge configuration."""


class CountedResponses(NamedTuple):
    """The vintage and the configuration hashes of a model's responses that count."""

    vintage: str
    config_hashes: set[str]


class _Matrix:
    """The coverage matrix: the wanted cells of each model and judge configuration, and their
    state.
    """

    def __init__(self, job: Job, reader: Reader, only_stored: bool) -> None:
        self._job = job
        self._reader = reader
        self._only_stored = only_stored
        self._job_tasks = wanted_tasks(job, reader)
        # The vintages that count, in order of preference.
        self._vintages = job.vintages
        if only_stored and job.night is not None:
            self._vintages = list(dict.fromkeys((job.night, job.vintage)))
        task_ids = list(self._job_tasks.task_ids)
        tasks = reader.select("tasks", task_id=task_ids, **self._job_tasks.key)
        self._n_criteria = {row["task_id"]: row["n_criteria"] for row in tasks}
        self._models = self._counted_models()

    def all_cells(self) -> list[CoverageCell]:
        """Return the cells of responses, then those of verdicts under each judge configuration."""
        responses = self._counts({}, self._job_tasks.task_ids)
        due_responses = self._due(responses, len(self._n_criteria), "n")
        due_verdicts = self._due(responses, sum(self._n_criteria.values()), "n_criteria")
        cells = self._cells({}, responses, due_responses)
        configs = judge_configs(self._job, self._job_tasks.benchmark)
        configured = [judge_config.columns for judge_config in configs]
        # Imported or, with `only_stored`, all stored ones; if judges are named, only theirs.
        stored = self._rows(
            "stored_judge_configs",
            vintages=self._vintages,
            is_any_source=self._only_stored,
            judges=list(self._job.named_judges or ()),
        )
        for columns in configured + stored:
            verdicts = self._counts(columns, self._job_tasks.task_ids)
            for cell in self._cells(columns, verdicts, due_verdicts):
                # Verdicts that were made elsewhere are shown, not wanted.
                if columns in configured or cell.missing < cell.wanted:
                    cells.append(cell)
        return cells

    def _rows(self, query: str, **parameters: Any) -> list[Row]:
        return self._reader.query(f"queries/run/{query}", self._job_tasks.key | parameters)

    def _counted_models(self) -> dict[str, CountedResponses]:
        """Return, by model label, the responses that count."""
        job = self._job
        models = {}
        if self._only_stored:
            for row in self._rows("stored_models", vintages=self._vintages):
                if not job.named_models or row["model"] in job.named_models:
                    hashes = {row["model_config_hash"]}
                    models[row["model"]] = CountedResponses(row["vintage"], hashes)
            return models
        for label in imported_models(job, self._job_tasks, self._reader):
            models[label] = CountedResponses(job.vintage, {IMPORTED})
        for model in job.settings.models:
            hashes = {model_hash(model), IMPORTED}
            models[model.label] = CountedResponses(job.vintage_of(model), hashes)
        return models

    def _counts(
        self,
        judge_columns: JudgeColumns,
        task_ids: Iterable[str],
    ) -> list[Row]:
        """Return the numbers of the responses that count, or of their verdicts under a judge
        configuration.
        """
        response_keys = []
        for label, responses in self._models.items():
            for config_hash in responses.config_hashes:
                response_keys.append(responses_key(responses.vintage, config_hash, label))
        query = "verdict_coverage" if judge_columns else "response_coverage"
        return self._rows(query, tasks=sorted(task_ids), counting=response_keys, **judge_columns)

    def _due(
        self,
        responses: Iterable[Row],
        n_per_trial: int,
        count_column: str,
    ) -> TrialCounts:
        """Return how many responses or verdicts are due in each trial: `n_per_trial` of a sampled
        model, else the sum of `count_column` over its counted `responses`.

        Of a sampled model those of all wanted tasks are due; of an imported one only those of its
        imported responses, so none in a trial without imports. With `only_stored`, those of the
        stored responses are due, in all trials unless trials are named.
        """
        job = self._job
        due = TrialCounts()
        sampled_labels = set()
        for model in job.settings.models:
            if not model.is_imported:
                sampled_labels.add(model.label)
            for trial in job.trials:
                due[model.label, trial] = 0 if model.is_imported else n_per_trial
        is_any_trial = self._only_stored and job.named_trials is None
        for row in sorted(responses, key=lambda row: (row["model"], row["trial"])):
            is_due = self._only_stored or row["source"] == IMPORTED
            if row["model"] in sampled_labels or not is_due:
                continue
            if is_any_trial or row["trial"] in job.trials:
                due[row["model"], row["trial"]] += row[count_column]
        return due

    def _cells(
        self,
        judge_columns: JudgeColumns,
        rows: Iterable[Row],
        due: TrialCounts,
    ) -> list[CoverageCell]:
        """Return the cells of responses, or those of verdicts under a judge configuration."""
        sizes = self._n_criteria if judge_columns else dict.fromkeys(self._n_criteria, 1)
        cells = {}
        for (model, trial), n_due in due.items():
            cells[model, trial] = CoverageCell(
                model=model,
                vintage=self._models[model].vintage,
                trial=trial,
                judge=judge_columns.get("judge"),
                judge_trial=judge_columns.get("judge_trial"),
                wanted=sum(sizes.values()),
                due=n_due,
            )
        for row in rows:
            cell = cells.get((row["model"], row["trial"]))
            if cell is None:
                continue
            if row["status"] in {OK, *DECIDED}:
                cell.done += row["n"]
            else:
                cell.failures[row["status"]] += row["n"]
        self._skip_left_out(cells, judge_columns, sizes)
        return list(cells.values())

    def _skip_left_out(
        self,
        cells: Mapping[tuple[str, int], CoverageCell],
        judge_columns: JudgeColumns,
        sizes: Mapping[str, int],
    ) -> None:
        """Count what no comparison needs as skipped, not as wanted or due, unless it is stored."""
        for model, task_ids in self._job_tasks.comparisons.left_out.items():
            responses = self._counts({}, task_ids)
            n_left_out = sum(sizes[task_id] for task_id in task_ids)
            due_left_out = self._due(responses, n_left_out, "n_criteria" if judge_columns else "n")
            n_stored = TrialCounts()
            for row in self._counts(judge_columns, task_ids):
                n_stored[row["model"], row["trial"]] += row["n"]
            for key, cell in cells.items():
                if cell.model == model:
                    cell.skipped = n_left_out - n_stored[key]
                    cell.wanted -= cell.skipped
                    cell.due -= due_left_out[key] - n_stored[key]
