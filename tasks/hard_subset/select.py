"""The selection of the hard subset of each field, stored as a new version, with its stability."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules import hardness
from tasks.rules.errors import PipelineError
from tasks.rules.hardness import BORDER, HardSubsetError
from tasks.rules.identity import BASE_VINTAGE, JUDGE_CONFIG, digest
from tasks.rules.text.characters import hint_on
from tasks.rules.text.numbers import coverage_text
from tasks.run.judge_configs import judge_configs
from tasks.run.writing import StageReport
from warehouse import TABLES, Reader, Row, Warehouse

_STAGE = "select-hard"


class TaskScore(NamedTuple):
    """A model's score for a task: the mean over its complete trials, and the score of each."""

    mean: float
    by_trial: Mapping[int, float]


Panel = Mapping[str, Mapping[str, TaskScore]]
"""Model label -> task id -> score."""


@dataclass(frozen=True)
class _Selection:
    """The hardest tasks of a field, selected from those with a complete trial of every model of the
    panel.

    Attributes:
        identity: the selection id, a hash of all that it depends on.
        models: the labels of the panel's models, sorted.
        scores: candidate task -> the score of each model; sorted by task id.
        selected: task -> mean score, of the hardest tasks, hardest first.
    """

    identity: str
    models: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    selected: Mapping[str, float]


def _admitted_tasks(reader: Reader, job: Job) -> dict[str, set[str]]:
    """Return the ids of the admitted tasks of the job's splits, by field."""
    ids_by_field: dict[str, set[str]] = defaultdict(set)
    for row in reader.select("tasks", "field, task_id, splits", **job.key, is_admitted=True):
        if row["field"] is not None and not set(job.data.splits).isdisjoint(row["splits"]):
            ids_by_field[row["field"]].add(row["task_id"])
    return ids_by_field


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
    scores: dict[str, dict[str, TaskScore]] = defaultdict(dict)
    for row in reader.query("queries/hard_subset/selecting_scores", parameters):
        by_trial = dict(zip(row["complete_trials"], row["trial_values"], strict=True))
        scores[row["model"]][row["task_id"]] = TaskScore(row["value"], by_trial)
    if panel == "all":
        return scores
    for model in panel:
        if model not in scores:
            hint = hint_on(model, scores)
            raise HardSubsetError(f"{model!r} of hard_subset.panel has no complete task{hint}")
    return {model: scores[model] for model in panel}


def _ranking_id(reader: Reader, job: Job, benchmark: Benchmark) -> int:
    """Return the key of the ranking used to select.

    It is that of the first configured judge with verdicts of the vintage (in its first repetition),
    or of the only stored one.
    """
    columns = f"distinct ranking_id, vintage, {', '.join(JUDGE_CONFIG)}"
    key: dict[str, Any] = dict(job.key)
    if job.named_judges:
        key["judge"] = list(job.named_judges)
    stored_rankings = reader.select("intermediate.model_runs", columns, **key)
    configs = judge_configs(job, benchmark)
    rankings = []
    for config in configs:
        identity = config.columns.items()
        rankings += [row for row in stored_rankings if identity <= row.items()]
    is_configured = bool(rankings)
    if not is_configured and (job.named_judges or not configs):
        rankings = stored_rankings
    vintage = _vintage_of(job, {row["vintage"] for row in rankings})
    rankings = [row for row in rankings if row["vintage"] == vintage]
    if not rankings:
        judge = f"--judge {job.named_judges[0]}" if job.named_judges else "the configured judge"
        raise HardSubsetError(f"no verdict of {judge} is stored; run `prbench judge` first")
    if not is_configured:
        rankings = [row for row in rankings if row["judge_trial"] == 1] or rankings
        if len(rankings) > 1:
            names = ", ".join(sorted({row["judge"] for row in rankings}))
            raise HardSubsetError(
                f"several judges or configurations of one have verdicts ({names}); configure one"
            )
    return int(rankings[0]["ranking_id"])


def _vintage_of(job: Job, stored_vintages: Collection[str]) -> str:
    """Return the vintage whose responses select.

    It is the job's. If that is the base one, but there are verdicts only on nights (because every
    model is sampled nightly), it is the job's night, or else the latest one.
    """
    if job.vintage != BASE_VINTAGE or not stored_vintages or BASE_VINTAGE in stored_vintages:
        return job.vintage
    if job.night and job.night in stored_vintages:
        return job.night
    return max(stored_vintages)


def _select_field(job: Job, field: str, task_ids: set[str], panel: Panel) -> _Selection:
    """Select among the tasks of a field that have a complete trial of every model of the panel.

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
    setting = "hard_subset.min_coverage"
    bar = settings.hard_subset.min_coverage
    if bar is None:
        setting = "coverage.min"
        bar = settings.coverage.min
    if coverage < bar:
        raise HardSubsetError(
            f"{len(complete)} of {len(task_ids)} tasks are complete for all {len(models)} models "
            f"({coverage_text(coverage)}, {setting} is {bar:.1%})"
        )
    scores = {}
    for task in complete:
        scores[task] = tuple(panel[model][task].mean for model in models)
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
    for model in selection.models:
        scores = [panel[model][task] for task in selection.scores]
        trials = sorted(set().union(*(score.by_trial for score in scores)))
        n_trials.append(len(trials))
        for trial in trials:
            columns.append([score.by_trial.get(trial, score.mean) for score in scores])
    shares = hardness.inclusion_probabilities(
        np.column_stack(columns), n_trials, len(selection.selected)
    )
    return dict(zip(selection.scores, shares.tolist(), strict=True))


def _overlaps(
    selection: _Selection,
    official: str,
    members: frozenset[str],
) -> list[Row]:
    """Return the overlaps of a selection with those of the panel without one model, and with the
    data set's hard split.

    A selection without one model is made from the same candidate tasks. Only candidates count in
    the data set's hard split (`official`, with the tasks `members`); if it has none of them or all,
    it has no row.
    """
    selected = frozenset(selection.selected)
    scores = selection.scores
    rows = []
    if len(selection.models) > 1:
        selections = hardness.leave_one_out(scores, len(selected))
        for model, tasks in zip(selection.models, selections, strict=True):
            rows.append(_overlap_row("leave_one_out", model, selected, tasks))
    candidates = members & scores.keys()
    if 0 < len(candidates) < len(scores):
        rows.append(_overlap_row("official", official, selected, candidates))
    return rows


def _overlap_row(
    kind: str,
    compared_with: str,
    selected: frozenset[str],
    compared: frozenset[str],
) -> Row:
    n_shared = len(selected & compared)
    return {
        "kind": kind,
        "compared_with": compared_with,
        "n_selected": len(selected),
        "n_compared": len(compared),
        "n_shared": n_shared,
        "jaccard": n_shared / len(selected | compared),
    }


def select_hard(job: Job, *, must_select: bool = True) -> StageReport:
    """Select the hard subset of every field, by the primary score under one judge configuration.

    The tasks to choose from are the admitted ones of the chosen splits that are complete for every
    model of the panel. A field with too few such tasks is refused: with an error if `must_select`
    is true, else with a warning. The same data gives the same selection id and adds no rows.
    The rows on stability are stored once for each selection.

    Raises:
        PipelineError: a field is refused, or several judge configurations could select.
    """
    benchmark = load_benchmark(job.benchmark)
    warehouse = Warehouse(job.warehouse)
    report = StageReport(_STAGE)
    with warehouse.reader() as reader, _refusal(report, must_select):
        panel = _read_panel(reader, job, benchmark)
        for field, task_ids in sorted(_admitted_tasks(reader, job).items()):
            with _refusal(report, must_select, field):
                selection = _select_field(job, field, task_ids, panel)
                tables = _rows(
                    reader, job, field, selection, panel, benchmark.hard_splits.get(field, "")
                )
                for table, rows in tables.items():
                    missing_rows = _missing_rows(reader, table, rows, selection.identity)
                    warehouse.write(table, missing_rows)
                    report.rows += len(missing_rows)
                n_border = sum(row["is_border"] for row in tables["hard_stability"])
                report.notes.append(_note(field, len(task_ids), selection, n_border))
    if report.rows:
        warehouse.publish()
    return report


def _note(field: str, n_tasks: int, selection: _Selection, n_border: int) -> str:
    n_complete = len(selection.scores)
    candidates = "" if n_complete == n_tasks else f" (chosen from {n_complete})"
    n_selected = len(selection.selected)
    return (
        f"{field}: {n_selected} of {n_tasks} tasks are hard{candidates}, {n_border} on the border"
    )


@contextmanager
def _refusal(report: StageReport, must_select: bool, field: str = "") -> Iterator[None]:
    """Report a refused selection as an error, or without `must_select` as a warning.

    `field` is empty if all fields are refused.
    """
    try:
        yield
    except HardSubsetError as error:
        if must_select:
            cause = f"{field}: {error}" if field else error
            raise PipelineError(f"{_STAGE}: {cause}") from error
        scope = f" for {field}" if field else ""
        report.warnings.append(f"no hard subset{scope}: {error}")


def has_new_selection(job: Job) -> bool:
    """Return whether selecting now would change the current selection of a field.

    Raises:
        PipelineError: a field is refused, or the judge configuration to select by is not clear.
    """
    with Warehouse(job.warehouse).reader() as reader:
        panel = _read_panel(reader, job, load_benchmark(job.benchmark))
        rows = reader.select("intermediate.latest_selections", "selection_id")
        stored_ids = {row["selection_id"] for row in rows}
        selected_ids = set()
        for field, task_ids in _admitted_tasks(reader, job).items():
            selected_ids.add(_select_field(job, field, task_ids, panel).identity)
    return not selected_ids <= stored_ids


def _rows(
    reader: Reader,
    job: Job,
    field: str,
    selection: _Selection,
    panel: Panel,
    official: str,
) -> dict[str, list[Row]]:
    """Return all rows of a selection by table; `official` is the data set's hard split, or
    empty.
    """
    key = {
        "selection_id": selection.identity,
        **job.key,
        "field": field,
    }
    selected_at = datetime.now(UTC)
    selected = []
    for rank, (task, mean) in enumerate(selection.selected.items(), start=1):
        selected.append(
            {
                **key,
                "task_id": task,
                "rank": rank,
                "mean_score": mean,
                "n_models": len(selection.models),
                "panel": list(selection.models),
                "selected_at": selected_at,
            }
        )
    member_rows = reader.select("split_members", "task_id", **job.key, split=official)
    members = frozenset(row["task_id"] for row in member_rows)
    overlaps = _overlaps(selection, official, members)
    return {
        "hard_subset": selected,
        "hard_stability": [key | row for row in _stability(panel, selection)],
        "hard_overlaps": [key | row for row in overlaps],
    }


def _stability(panel: Panel, selection: _Selection) -> list[Row]:
    """Return a row for each candidate task, hardest first."""
    probabilities = _inclusion_probabilities(panel, selection)
    candidates = hardness.select_hardest(selection.scores, len(selection.scores))
    rows = []
    for task, mean in candidates.items():
        rows.append(
            {
                "task_id": task,
                "mean_score": mean,
                "is_selected": task in selection.selected,
                "inclusion_probability": probabilities[task],
                "is_border": BORDER[0] <= probabilities[task] <= BORDER[1],
            }
        )
    return rows


def _missing_rows(
    reader: Reader,
    table: str,
    rows: list[Row],
    selection_id: str,
) -> list[Row]:
    """Return the rows of a selection that are not stored.

    A selection that is not the current one is written again, because the one that was selected last
    is current.
    """
    relation = table
    if table == "hard_subset":
        relation = "hard_subset semi join intermediate.latest_selections using (selection_id)"
    key_of = itemgetter(*TABLES[table].key)
    stored_keys = {key_of(row) for row in reader.select(relation, selection_id=selection_id)}
    return [row for row in rows if key_of(row) not in stored_keys]
