"""The selection of the hard subset of each field, stored as a new version, with its stability."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.rules.errors import PipelineError
from tasks.rules.hardness import (
    BORDER,
    HardSubsetError,
    Selected,
    inclusion_probabilities,
    jaccard,
    leave_one_out,
    select_hardest,
    selection_id,
    wanted_size,
)
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.numbers import coverage_text
from tasks.run.judge_configs import judge_configs
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskScore:
    """A model's score of a task (the mean over its complete trials), and the score in each of them."""

    value: float
    by_trial: Mapping[int, float]


Panel = Mapping[str, Mapping[str, TaskScore]]
"""Model label -> task id -> score, of the tasks with a complete trial of the model."""


@dataclass(frozen=True, slots=True)
class Universe:
    """The tasks of a field with a complete trial of every model of a panel.

    `models` are sorted. `scores` has, for each task in the order of the ids, a score of each model; `trials` has the
    scores in each trial, shape (n_tasks, n_models, n_trials), with NaN if a model has fewer trials than another. In a
    trial that is complete only for other tasks, a task has the mean over its own trials.
    """

    field: str
    models: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    trials: NDArray[np.float64]


def admitted_tasks(reader: Reader, benchmark: str, revision: str, splits: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the ids of the admitted tasks of the splits, by field."""
    fields: dict[str, set[str]] = defaultdict(set)
    for row in reader.select(
        "tasks", "field, task_id, splits", benchmark=benchmark, dataset_revision=revision, is_admitted=True
    ):
        if row["field"] is not None and not set(splits).isdisjoint(row["splits"]):
            fields[row["field"]].add(row["task_id"])
    return fields


def read_panel(reader: Reader, job: Job, benchmark: Benchmark, revision: str) -> Panel:
    """Return the primary scores of the panel's models under the judge configuration that selects.

    If a label had several configurations, the one that was sampled last counts.

    Raises:
        HardSubsetError: several judges could select, or a model of the panel has no complete task.
    """
    ranking_id = _ranking_id(reader, job, benchmark, revision)
    panel = job.settings.hard_subset.panel
    scores: dict[str, dict[str, TaskScore]] = defaultdict(dict)
    parameters = {"ranking": ranking_id, "score": benchmark.primary_score.score_name}
    for row in reader.rows(sql.read("queries/hard_subset/selecting_scores"), parameters):
        scores[row["model"]][row["task_id"]] = TaskScore(
            row["value"], dict(zip(row["complete_trials"], row["trial_values"], strict=True))
        )
    if panel == "all":
        return scores
    unknown = [model for model in panel if model not in scores]
    if unknown:
        raise HardSubsetError(f"{unknown[0]!r} of hard_subset.panel has no complete task; known: {', '.join(scores)}")
    return {model: scores[model] for model in panel}


def _ranking_id(reader: Reader, job: Job, benchmark: Benchmark, revision: str) -> int:
    """Return the key of the ranking that selects: under the first configured judge, or under the only one."""
    columns = "distinct ranking_id, vintage, judge, judge_config_hash, template_hash, grading, judge_trial"
    rankings = reader.select("intermediate.model_runs", columns, benchmark=benchmark.name, dataset_revision=revision)
    configured = judge_configs(job, benchmark)
    if job.named_judges:
        rankings = [row for row in rankings if row["judge"] in job.named_judges]
    as_configured = [row for config in configured for row in rankings if row.items() >= config.columns.items()]
    if configured and not job.named_judges:
        rankings = as_configured
    # If every model is sampled nightly, only nights' vintages exist.
    stored, vintage = {row["vintage"] for row in rankings}, job.vintage
    if vintage == BASE_VINTAGE and stored and BASE_VINTAGE not in stored:
        vintage = job.night if job.night and job.night in stored else max(stored)
    rankings, as_configured = ([row for row in rows if row["vintage"] == vintage] for rows in (rankings, as_configured))
    if configured and not job.named_judges:
        rankings = as_configured[:1]
    if not rankings:
        of_whom = f"--judge {job.named_judges[0]}" if job.named_judges else "the configured judge"
        raise HardSubsetError(f"no verdict of {of_whom} is stored; run `prbench judge` first")
    names = sorted({row["judge"] for row in rankings})
    if len(names) > 1:
        raise HardSubsetError(
            f"verdicts of several judges are stored ({', '.join(names)}); name the one to use with --judge"
        )
    # A judge's first repetition selects.
    first = [row for row in (as_configured or rankings) if row["judge"] in names and row["judge_trial"] == 1]
    rankings = first[:1] if as_configured else first or rankings
    if len(rankings) > 1:
        raise HardSubsetError(f"{names[0]} is stored with several configurations; configure the one to use")
    return int(rankings[0]["ranking_id"])


def universe_of(field: str, task_ids: set[str], panel: Panel, settings: Settings) -> Universe:
    """Return the admitted tasks of a field that have a complete trial of every model of the panel.

    Raises:
        HardSubsetError: there is no panel, or too few tasks are complete.
    """
    models = tuple(sorted(panel))
    if not models:
        raise HardSubsetError("no model of the panel has a complete task")
    complete = sorted(task_ids.intersection(*(panel[model] for model in models)))
    coverage = len(complete) / len(task_ids)
    own_bar = settings.hard_subset.min_coverage
    name, bar = ("coverage.min", settings.coverage.min) if own_bar is None else ("hard_subset.min_coverage", own_bar)
    if coverage < bar:
        raise HardSubsetError(
            f"{len(complete)} of {len(task_ids)} tasks are complete for all {len(models)} models "
            f"({coverage_text(coverage)}, {name} is {bar:.1%})"
        )
    scores = {task: tuple(panel[model][task].value for model in models) for task in complete}
    return Universe(field, models, scores, _trials(panel, models, complete))


def _trials(panel: Panel, models: tuple[str, ...], tasks: list[str]) -> NDArray[np.float64]:
    trials_of = [sorted({trial for task in tasks for trial in panel[model][task].by_trial}) for model in models]
    trials = np.full((len(tasks), len(models), max(map(len, trials_of), default=0)), np.nan)
    for j, (model, of_model) in enumerate(zip(models, trials_of, strict=True)):
        for i, task in enumerate(tasks):
            score = panel[model][task]
            trials[i, j, : len(of_model)] = [score.by_trial.get(trial, score.value) for trial in of_model]
    return trials


def stability_rows(universe: Universe, size: int) -> list[Row]:
    """Return a row for each task of the universe, hardest first: its probability of selection by a resampled panel.

    The columns are those of `hard_stability` except the selection's key.
    """
    ranked = select_hardest(universe.scores, len(universe.scores))
    shares = inclusion_probabilities(universe.trials, size)
    probabilities = dict(zip(universe.scores, map(float, shares), strict=True))
    low, high = BORDER
    return [
        {
            "task_id": task.task_id,
            "mean_score": task.mean_score,
            "is_selected": task.rank <= size,
            "inclusion_probability": probabilities[task.task_id],
            "is_border": low <= probabilities[task.task_id] <= high,
        }
        for task in ranked
    ]


def overlap_rows(universe: Universe, selected: frozenset[str], official: Mapping[str, frozenset[str]]) -> list[Row]:
    """Return the overlaps of the selection with those of the panel without one model, and with the data set's own.

    The columns are those of `hard_overlaps` except the selection's key. A selection without one model uses the tasks of
    the whole panel's universe. Tasks of the data set's own split outside the universe are left out; a split with none
    or all of the universe has no row.

    Args:
        official: split name -> task ids.
    """
    rows = []
    if len(universe.models) > 1:
        others = leave_one_out(universe.scores, len(selected))
        rows = [_overlap("leave_one_out", *each, selected) for each in zip(universe.models, others, strict=True)]
    for split, members in official.items():
        within = members & universe.scores.keys()
        if 0 < len(within) < len(universe.scores):
            rows.append(_overlap("official", split, within, selected))
    return rows


def _overlap(kind: str, compared_with: str, other: frozenset[str], selected: frozenset[str]) -> Row:
    return {
        "kind": kind, "compared_with": compared_with, "n_selected": len(selected), "n_compared": len(other),
        "n_shared": len(selected & other), "jaccard": jaccard(selected, other),
    }  # fmt: skip


def in_words(n_border: int, overlaps: Sequence[Row]) -> str:
    """Return the stability of a selection as the end of a sentence."""
    words = f"{n_border} on the border"
    without = [row for row in overlaps if row["kind"] == "leave_one_out"]
    if without:
        least = min(without, key=lambda row: (row["jaccard"], row["compared_with"]))
        words += f"; least overlap without one model: {least['jaccard']:.2f} (without {least['compared_with']})"
    for row in overlaps:
        if row["kind"] == "official":
            words += f"; overlap with the official {row['compared_with']}: {row['jaccard']:.2f}"
    return words


@dataclass(frozen=True, slots=True)
class _Stored:
    """The stored selections: the current ones, the number of border tasks by selection, and the computed overlaps."""

    latest: set[str]
    n_border: dict[str, int]
    overlaps: set[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class _Selection:
    identity: str
    universe: Universe
    selected: list[Selected]

    @property
    def task_ids(self) -> frozenset[str]:
        return frozenset(each.task_id for each in self.selected)


def select_hard(job: Job, *, must_select: bool = True) -> StageReport:
    """Select for every field of the job's revision, by the primary score under one judge configuration.

    The universe is the admitted tasks of the chosen splits that are complete for every model of the panel. A field
    whose universe is too small, or has too low a coverage, is refused: with `must_select` as an error, else as a
    warning. The same data gives the same selection id, and no new rows. Stability is measured once per selection.

    Raises:
        PipelineError: a field is refused, or several judge configurations could select.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    warehouse = Warehouse(job.warehouse)
    report = StageReport("select-hard")
    with warehouse.reader() as reader:
        fields = admitted_tasks(reader, benchmark.name, data.revision, data.splits)
        official = {}  # by field, the tasks of the data set's own hard split; none if it is not stored
        for field, split in benchmark.hard_splits.items():
            key = {"benchmark": benchmark.name, "dataset_revision": data.revision, "split": split}
            members = reader.select("split_members", "task_id", **key)
            official[field] = {split: frozenset(row["task_id"] for row in members)}
        stored = _stored(reader)
        try:
            panel = read_panel(reader, job, benchmark, data.revision)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {error}") from error
            report.warnings.append(f"no hard subset: {error}")
            return report
    for field, task_ids in sorted(fields.items()):
        try:
            selection = _select_field(job, data.revision, field, task_ids, panel)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {field}: {error}") from error
            report.warnings.append(f"no hard subset for {field}: {error}")
            continue
        key = {"benchmark": benchmark.name, "dataset_revision": data.revision, "field": field}
        n_rows, words = _store(warehouse, key, selection, stored, official.get(field, {}))
        report.rows += n_rows
        n_complete = len(selection.universe.scores)
        aside = "" if n_complete == len(task_ids) else f" (chosen from {n_complete})"
        report.notes.append(f"{field}: {len(selection.selected)} of {len(task_ids)} tasks are hard{aside}, {words}")
    warehouse.publish()
    return report


def has_new_selection(job: Job) -> bool:
    """Return whether selecting now would change the current selection of a field.

    Raises:
        PipelineError: a field is refused, or the judge configuration to select by is not clear.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    with Warehouse(job.warehouse).reader() as reader:
        fields = admitted_tasks(reader, benchmark.name, data.revision, data.splits)
        latest = _stored(reader).latest
        try:
            panel = read_panel(reader, job, benchmark, data.revision)
            selections = [_select_field(job, data.revision, *of_field, panel) for of_field in fields.items()]
        except HardSubsetError as error:
            raise PipelineError(str(error)) from error
    return any(selection.identity not in latest for selection in selections)


def _stored(reader: Reader) -> _Stored:
    latest = reader.rows("select selection_id from intermediate.latest_selections")
    stable = reader.rows(
        "select selection_id, count(*) filter (is_border) as n_border from hard_stability group by selection_id"
    )
    overlaps = reader.rows("select selection_id, kind, compared_with from hard_overlaps")
    return _Stored(
        {row["selection_id"] for row in latest},
        {row["selection_id"]: row["n_border"] for row in stable},
        {(row["selection_id"], row["kind"], row["compared_with"]) for row in overlaps},
    )


def _select_field(job: Job, revision: str, field: str, task_ids: set[str], panel: Panel) -> _Selection:
    size = wanted_size(len(task_ids), job.settings.hard_subset.share, field)
    universe = universe_of(field, task_ids, panel, job.settings)
    selected = select_hardest(universe.scores, size)
    basis = sorted(universe.scores.items())
    identity = selection_id(job.settings.benchmark, revision, field, basis, universe.models, size)
    return _Selection(identity, universe, selected)


def _store(
    warehouse: Warehouse, key: Row, selection: _Selection, stored: _Stored, official: dict[str, frozenset[str]]
) -> tuple[int, str]:
    """Write the missing rows of a selection; return the number of written rows, and its stability in words.

    Each table is completed separately: a selection may lack rows if it is from before stability was measured, from a
    run that was killed here, or if its official split was ingested later.
    """
    key = {"selection_id": selection.identity} | key
    n_border = stored.n_border.get(selection.identity)
    overlaps = overlap_rows(selection.universe, selection.task_ids, official)
    new: dict[str, list[Row]] = {
        "hard_overlaps": [
            row for row in overlaps if (selection.identity, row["kind"], row["compared_with"]) not in stored.overlaps
        ]
    }
    if selection.identity not in stored.latest:
        # Also for a selection that was stored earlier: the one that was selected last is current.
        models, now = selection.universe.models, datetime.now(UTC)
        new["hard_subset"] = [
            {
                "task_id": task.task_id, "rank": task.rank, "mean_score": task.mean_score, "n_models": len(models),
                "panel": list(models), "selected_at": now,
            }
            for task in selection.selected
        ]  # fmt: skip
    if n_border is None:
        new["hard_stability"] = stability_rows(selection.universe, len(selection.selected))
        n_border = sum(row["is_border"] for row in new["hard_stability"])
    for table, rows in new.items():
        warehouse.write(table, [key | row for row in rows])
    return sum(map(len, new.values())), in_words(n_border, overlaps)
