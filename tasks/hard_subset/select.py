"""The selection of the hard subset of each field, stored as a new version, with its stability."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np

import sql
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules import hardness
from tasks.rules.errors import PipelineError
from tasks.rules.hardness import BORDER, HardSubsetError
from tasks.rules.identity import BASE_VINTAGE, digest
from tasks.rules.text.numbers import coverage_text
from tasks.run.judge_configs import judge_configs
from tasks.run.writing import StageReport
from warehouse import TABLES, Reader, Warehouse

Row = dict[str, Any]


Panel = Mapping[str, Mapping[str, tuple[float, Mapping[int, float]]]]
"""Model label -> task id -> the task's score (the mean over its complete trials), and trial ->
score.
"""


@dataclass(frozen=True, slots=True)
class _Selection:
    """The hardest tasks of a field, selected from those with a complete trial of every model of the
    panel.

    `models` are sorted. `scores` has the score of each model for each task, in the order of the
    task ids, `selected` the mean scores of the hardest tasks, hardest first.
    """

    identity: str
    models: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    selected: Mapping[str, float]


def _admitted_tasks(reader: Reader, job: Job) -> dict[str, set[str]]:
    """Return the ids of the admitted tasks of the job's splits, by field, in the order of the
    fields.
    """
    fields: dict[str, set[str]] = defaultdict(set)
    for row in reader.select("tasks", "field, task_id, splits", **job.key, is_admitted=True):
        if row["field"] is not None and not set(job.data.splits).isdisjoint(row["splits"]):
            fields[row["field"]].add(row["task_id"])
    return fields


def _read_panel(reader: Reader, job: Job, benchmark: Benchmark) -> Panel:
    """Return the primary scores of the panel's models under the judge configuration used to select.

    If a label has had several configurations, the one that was sampled last counts.

    Raises:
        HardSubsetError: several judges could select, or a model of the panel has no complete task.
    """
    parameters = {
        "ranking": _ranking_id(reader, job, benchmark),
        "score": benchmark.primary_score.score_name,
    }
    panel = job.settings.hard_subset.panel
    scores: dict[str, dict[str, tuple[float, dict[int, float]]]] = defaultdict(dict)
    for row in reader.rows(sql.read("queries/hard_subset/selecting_scores"), parameters):
        by_trial = dict(zip(row["complete_trials"], row["trial_values"], strict=True))
        scores[row["model"]][row["task_id"]] = row["value"], by_trial
    if panel == "all":
        return scores
    unknown = [model for model in panel if model not in scores]
    if unknown:
        raise HardSubsetError(
            f"{unknown[0]!r} of hard_subset.panel has no complete task; known: {', '.join(scores)}"
        )
    return {model: scores[model] for model in panel}


def _ranking_id(reader: Reader, job: Job, benchmark: Benchmark) -> int:
    """Return the key of the ranking used to select: that of the first configured judge, or of the
    only stored one.
    """
    columns = (
        "distinct ranking_id, vintage, judge, judge_config_hash, template_hash, grading,"
        " judge_trial"
    )
    named: dict[str, Any] = {"judge": list(job.named_judges)} if job.named_judges else {}
    rankings = reader.select("intermediate.model_runs", columns, **job.key, **named)
    configs = judge_configs(job, benchmark)
    configured = [
        row for config in configs for row in rankings if row.items() >= config.columns.items()
    ]
    possible = configured or ([] if configs and not job.named_judges else rankings)
    # If every model is sampled nightly, there is no base vintage.
    stored = {row["vintage"] for row in possible}
    vintage = job.vintage
    if vintage == BASE_VINTAGE and stored and BASE_VINTAGE not in stored:
        vintage = job.night if job.night and job.night in stored else max(stored)
    possible = [row for row in possible if row["vintage"] == vintage]
    if not possible:
        of_whom = f"--judge {job.named_judges[0]}" if job.named_judges else "the configured judge"
        raise HardSubsetError(f"no verdict of {of_whom} is stored; run `prbench judge` first")
    # The first repetition of a judge is used.
    first = (
        possible[:1]
        if configured
        else [row for row in possible if row["judge_trial"] == 1] or possible
    )
    if len(first) > 1:
        names = ", ".join(sorted({row["judge"] for row in first}))
        raise HardSubsetError(
            f"several judges or configurations of one have verdicts ({names}); configure one"
        )
    return int(first[0]["ranking_id"])


def _select_field(job: Job, field: str, task_ids: set[str], panel: Panel) -> _Selection:
    """Select among the admitted tasks of a field that have a complete trial of every model of the
    panel.

    Raises:
        HardSubsetError: there is no panel, or too few tasks are complete.
    """
    settings = job.settings
    models = tuple(sorted(panel))
    size = hardness.wanted_size(len(task_ids), settings.hard_subset.share, field)
    if not models:
        raise HardSubsetError("no model of the panel has a complete task")
    complete = sorted(task_ids.intersection(*(panel[model] for model in models)))
    coverage = len(complete) / len(task_ids)
    own_bar = settings.hard_subset.min_coverage
    name, bar = (
        ("coverage.min", settings.coverage.min)
        if own_bar is None
        else ("hard_subset.min_coverage", own_bar)
    )
    if coverage < bar:
        raise HardSubsetError(
            f"{len(complete)} of {len(task_ids)} tasks are complete for all {len(models)} models "
            f"({coverage_text(coverage)}, {name} is {bar:.1%})"
        )
    scores = {task: tuple(panel[model][task][0] for model in models) for task in complete}
    identity = digest(
        "selection",
        job.key["benchmark"],
        job.key["dataset_revision"],
        field,
        sorted(scores.items()),
        models,
        size,
    )
    return _Selection(identity, models, scores, hardness.select_hardest(scores, size))


def _inclusion_probabilities(panel: Panel, selection: _Selection) -> dict[str, float]:
    """Return the share of resampled panels under which each task is selected.

    If a task is not complete in a trial of a model, the mean over its complete trials takes the
    place of its score.
    """
    columns = []
    n_trials = []
    for of_model in (panel[model] for model in selection.models):
        values, by_trial = zip(*(of_model[task] for task in selection.scores), strict=True)
        trials = sorted(set().union(*by_trial))
        n_trials.append(len(trials))
        columns += [
            [of.get(trial, value) for value, of in zip(values, by_trial, strict=True)]
            for trial in trials
        ]
    shares = hardness.inclusion_probabilities(
        np.column_stack(columns), n_trials, len(selection.selected)
    )
    return dict(zip(selection.scores, shares.tolist(), strict=True))


def _overlaps(selection: _Selection, official: str | None, members: frozenset[str]) -> list[Row]:
    """Return the overlaps of a selection with those of the panel without one model, and with the
    data set's hard split.

    A selection without one model is made from the same candidate tasks. Only candidates count in
    the data set's hard split (`official`, with the tasks `members`); if it has none of them or all,
    it has no row.
    """
    selected = frozenset(selection.selected)
    scores = selection.scores
    others = {}
    if len(selection.models) > 1:
        without = zip(selection.models, hardness.leave_one_out(scores, len(selected)), strict=True)
        others = {("leave_one_out", model): tasks for model, tasks in without}
    if official and 0 < len(within := members & scores.keys()) < len(scores):
        others["official", official] = within
    return [
        {
            "kind": kind,
            "compared_with": name,
            "n_selected": len(selected),
            "n_compared": len(other),
            "n_shared": len(selected & other),
            "jaccard": len(selected & other) / len(selected | other),
        }
        for (kind, name), other in others.items()
    ]


def select_hard(job: Job, *, must_select: bool = True) -> StageReport:
    """Select the hard subset of every field of the job's revision, by the primary score under one
    judge configuration.

    The tasks to choose from are the admitted ones of the chosen splits that are complete for every
    model of the panel. A field with too few such tasks is refused: with an error if `must_select`
    is true, else with a warning. The same data gives the same selection id and adds no rows.
    Stability is measured once for each selection.

    Raises:
        PipelineError: a field is refused, or several judge configurations could select.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    warehouse = Warehouse(job.warehouse)
    report = StageReport(_STAGE)
    with warehouse.reader() as reader:
        with _refusal(report, must_select):
            panel = _read_panel(reader, job, benchmark)
        if report.warnings:
            return report
        for field, task_ids in sorted(_admitted_tasks(reader, job).items()):
            with _refusal(report, must_select, field):
                selection = _select_field(job, field, task_ids, panel)
                rows = _rows(reader, job, field, selection, panel, benchmark.hard_splits.get(field))
                for table, of_table in rows.items():
                    new = _new(reader, table, of_table, selection.identity)
                    warehouse.write(table, new)
                    report.rows += len(new)
                n_complete = len(selection.scores)
                aside = "" if n_complete == len(task_ids) else f" (chosen from {n_complete})"
                n_selected = f"{len(selection.selected)} of {len(task_ids)}"
                n_border = sum(row["is_border"] for row in rows["hard_stability"])
                report.notes.append(
                    f"{field}: {n_selected} tasks are hard{aside}, {n_border} on the border"
                )
    warehouse.publish()
    return report


_STAGE = "select-hard"


@contextmanager
def _refusal(report: StageReport, must_select: bool, field: str = "") -> Iterator[None]:
    """Report a refused selection as an error, or without `must_select` as a warning of the
    stage.
    """
    try:
        yield
    except HardSubsetError as error:
        if must_select:
            raise PipelineError(f"{_STAGE}: {field}{field and ': '}{error}") from error
        report.warnings.append(f"no hard subset{field and f' for {field}'}: {error}")


def has_new_selection(job: Job) -> bool:
    """Return whether selecting now would change the current selection of a field.

    Raises:
        PipelineError: a field is refused, or the judge configuration to select by is not clear.
    """
    with (
        Warehouse(job.warehouse).reader() as reader,
        _refusal(StageReport(_STAGE), must_select=True),
    ):
        panel = _read_panel(reader, job, load_benchmark(job.settings.benchmark))
        latest = {
            row["selection_id"]
            for row in reader.select("intermediate.latest_selections", "selection_id")
        }
        selections = [
            _select_field(job, *of_field, panel)
            for of_field in _admitted_tasks(reader, job).items()
        ]
        return any(selection.identity not in latest for selection in selections)


def _rows(
    reader: Reader, job: Job, field: str, selection: _Selection, panel: Panel, official: str | None
) -> dict[str, list[Row]]:
    """Return all rows of a selection, by table; tasks in `hard_stability` are all candidates,
    hardest first.
    """
    members = reader.select("split_members", "task_id", **job.key, split=official or "")
    shares = _inclusion_probabilities(panel, selection)
    hardest = selection.selected.items()
    of_panel = {
        "n_models": len(selection.models),
        "panel": [*selection.models],
        "selected_at": datetime.now(UTC),
    }
    tables = {
        "hard_subset": [
            {
                "task_id": task,
                "rank": rank,
                "mean_score": mean,
                **of_panel,
            }
            for rank, (task, mean) in enumerate(hardest, start=1)
        ],
        "hard_stability": [
            {
                "task_id": task,
                "mean_score": mean,
                "is_selected": task in selection.selected,
                "inclusion_probability": shares[task],
                "is_border": BORDER[0] <= shares[task] <= BORDER[1],
            }
            for task, mean in hardness.select_hardest(
                selection.scores, len(selection.scores)
            ).items()
        ],
        "hard_overlaps": _overlaps(
            selection, official, frozenset(row["task_id"] for row in members)
        ),
    }
    of_field = {
        "selection_id": selection.identity,
        **job.key,
        "field": field,
    }
    return {table: [of_field | row for row in rows] for table, rows in tables.items()}


def _new(reader: Reader, table: str, rows: list[Row], selection_id: str) -> list[Row]:
    """Return the rows of a selection that are not stored.

    A selection that is not the current one is written again, because the one that was selected last
    is current.
    """
    current = "hard_subset semi join intermediate.latest_selections using (selection_id)"
    stored = reader.select(current if table == "hard_subset" else table, selection_id=selection_id)
    key_of = itemgetter(*TABLES[table].key)
    keys = set(map(key_of, stored))
    return [row for row in rows if key_of(row) not in keys]
