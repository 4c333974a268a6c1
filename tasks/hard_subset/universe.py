"""What a hard selection chooses from: the tasks of a field with a complete trial of every model of a panel.

The panel is all models, or the named ones, under one judging.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.rules.hardness import HardSubsetError
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.numbers import coverage_text
from tasks.run.judgings import judgings
from warehouse import Reader


@dataclass(frozen=True, slots=True)
class TaskScore:
    """A model's score of a task, the mean over its complete trials, beside the score in each of them."""

    value: float
    by_trial: Mapping[int, float]


Panel = Mapping[str, Mapping[str, TaskScore]]
"""Model label -> task id -> score, of the tasks with a complete trial of the model."""


@dataclass(frozen=True, slots=True)
class Universe:
    """The tasks of a field with a complete trial of every model of a panel.

    `models` are sorted. `scores` has, for each task in the order of the ids, one score a model; `trials` the scores
    in each trial, shape (n_tasks, n_models, n_trials), NaN where a model has fewer trials than another. In a trial that
    is complete for other tasks only, a task has its mean over the trials that it has.
    """

    field: str
    models: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    trials: NDArray[np.float64]


def admitted_tasks(reader: Reader, benchmark: str, revision: str, splits: tuple[str, ...]) -> dict[str, set[str]]:
    """The ids of the admitted tasks of the splits, by field."""
    fields: dict[str, set[str]] = defaultdict(set)
    parameters = {"benchmark": benchmark, "revision": revision, "splits": list(splits)}
    for row in reader.rows(sql.read("questions/hard_subset/admitted_tasks"), parameters):
        fields[row["field"]].add(row["task_id"])
    return fields


def read_panel(reader: Reader, job: Job, benchmark: Benchmark, revision: str) -> Panel:
    """The primary scores of the panel's models under the judging that selects.

    Of a label that was configured in several ways, the way that was sampled last counts.

    Raises:
        HardSubsetError: the judging to select by is not clear, or a model of the panel has no complete task.
    """
    ranking_id = _ranking_id(reader, job, benchmark, revision)
    panel = job.settings.hard_subset.panel
    scores: dict[str, dict[str, TaskScore]] = defaultdict(dict)
    parameters = {"ranking": ranking_id, "score": benchmark.primary_score.score_name}
    for row in reader.rows(sql.read("questions/hard_subset/selecting_scores"), parameters):
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
    """The key of the ranking that selects: under the first configured judge, or the only one that there is."""
    parameters = {"benchmark": benchmark.name, "revision": revision}
    found = reader.rows(sql.read("questions/hard_subset/rankings"), parameters)
    configured = judgings(job, benchmark)
    if job.named_judges:
        found = [row for row in found if row["judge"] in job.named_judges]
    as_configured = [
        row
        for judging in configured
        for row in found
        if all(row[name] == value for name, value in judging.columns.items())
    ]
    if configured and not job.named_judges:
        found = as_configured
    vintage = _vintage(job, {row["vintage"] for row in found})
    found, as_configured = ([row for row in rows if row["vintage"] == vintage] for rows in (found, as_configured))
    if configured and not job.named_judges:
        found = as_configured[:1]
    if not found:
        of_whom = f"--judge {job.named_judges[0]}" if job.named_judges else "the configured judge"
        raise HardSubsetError(f"no verdict of {of_whom} is stored; run `prbench judge` first")
    names = sorted({row["judge"] for row in found})
    if len(names) > 1:
        raise HardSubsetError(
            f"verdicts of several judges are stored ({', '.join(names)}); name the one to use with --judge"
        )
    # Of a judge's repetitions the first selects.
    first = [row for row in (as_configured or found) if row["judge"] in names and row["judge_trial"] == 1]
    found = first[:1] if as_configured else first or found
    if len(found) > 1:
        raise HardSubsetError(f"{names[0]} is stored with several configurations; configure the one to use")
    return int(found[0]["ranking_id"])


def _vintage(job: Job, stored: set[str]) -> str:
    """Return the vintage that selects: where every model is sampled nightly there is no other than a night's."""
    if job.vintage != BASE_VINTAGE or BASE_VINTAGE in stored or not stored:
        return job.vintage
    return job.night if job.night in stored else max(stored)


def universe_of(field: str, task_ids: set[str], panel: Panel, settings: Settings) -> Universe:
    """Those of a field's admitted tasks with a complete trial of every model of the panel.

    Raises:
        HardSubsetError: there is no panel, or too few of the tasks have that.
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
    made = [sorted({trial for task in tasks for trial in panel[model][task].by_trial}) for model in models]
    trials = np.full((len(tasks), len(models), max(map(len, made), default=0)), np.nan)
    for j, (model, of_model) in enumerate(zip(models, made, strict=True)):
        for i, task in enumerate(tasks):
            score = panel[model][task]
            trials[i, j, : len(of_model)] = [score.by_trial.get(trial, score.value) for trial in of_model]
    return trials
