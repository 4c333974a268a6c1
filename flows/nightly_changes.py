"""What changed since the last comparable night: every resampled model, paired by task."""

from collections.abc import Mapping
from typing import Any

import sql
from tasks.alerts import Comparison
from tasks.benchmarks import load_benchmark
from tasks.compare import Difference, Question, compare
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import PipelineError
from tasks.rules.statistics.comparison import holm
from warehouse import Reader, Warehouse

_JUDGING = ("model", "model_config_hash", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
"""Columns that are equal on both sides of a comparison."""


def comparisons(job: Job) -> list[Comparison]:
    """A comparison for each model of the night, split, and configured judge; none in the first night."""
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    models = {model.label for model in job.settings.models if model.resample == "nightly"}
    judges = {judge.label for judge in job.settings.judges}
    parameters = {"benchmark": benchmark.name, "revision": data.revision, "night": job.night}
    found: list[Comparison] = []
    with Warehouse(job.warehouse).reader() as reader:
        for row in reader.rows(sql.read("questions/nightly/pairs"), parameters):
            if row["model"] not in models or row["judge"] not in judges:
                continue
            if row["last_vintage"] is None:
                notice(f"{row['model']}, judged by {row['judge']}: no earlier night to compare with")
            else:
                score = benchmark.primary_score.score_name
                found += (
                    _comparison(score, each) for each in _of_judging(job, reader, data.revision, parameters | row)
                )
    return found


def changes(job: Job, vintage: str | None = None) -> list[dict[str, Any]]:
    """What changed in each model's latest vintage since its last comparable one, under every judge, for the report.

    With a `vintage` it is that one instead of the latest.

    A row has the compared model runs, the split, and the interval and p-value of the difference (Holm-corrected
    over all rows). A model with one vintage has no row.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    parameters = {"benchmark": benchmark.name, "revision": data.revision}
    found: list[tuple[Mapping[str, Any], Difference]] = []
    with Warehouse(job.warehouse).reader() as reader:
        for latest in reader.rows(sql.read("questions/nightly/latest_samplings"), parameters | {"vintage": vintage}):
            pairs = reader.rows(sql.read("questions/nightly/pairs"), parameters | {"night": latest["vintage"]})
            for row in pairs:
                if row["last_vintage"] is not None and all(row[name] == latest[name] for name in _JUDGING):
                    given = parameters | {"night": latest["vintage"]} | row
                    found += ((given, each) for each in _of_judging(job, reader, data.revision, given))
    adjusted = holm([each.paired.p_value for _, each in found])
    return [_change(row, each, p) for (row, each), p in zip(found, adjusted, strict=True)]


def _change(row: Mapping[str, Any], found: Difference, p_adjusted: float | None) -> dict[str, Any]:
    return {name: row[name] for name in _JUDGING} | {
        "first_vintage": row["last_vintage"],
        "second_vintage": row["night"],
        "split": found.split,
        "ci_low": found.paired.ci_low,
        "ci_high": found.paired.ci_high,
        "p_adjusted": p_adjusted,
    }


def _of_judging(job: Job, reader: Reader, revision: str, row: Mapping[str, Any]) -> list[Difference]:
    """The differences of one model's vintage (`night`) to the one before under one judging, by split."""
    benchmark = load_benchmark(job.settings.benchmark)
    score = benchmark.primary_score
    question = Question(
        benchmark=benchmark.name,
        names=(row["last_vintage"], row["night"]),
        kind="vintage",
        revision=revision,
        splits=job.settings.dataset.splits,
        score=score.score_name,
        clips_mean=score.clips_mean,
        models=(row["model"],),
        judges=(row["judge"],),
    )
    try:
        found = compare(reader, question).differences
    except PipelineError as error:
        notice(f"{row['model']} is not compared with {row['last_vintage']}: {error}")
        return []
    return [each for each in found if all(getattr(each.pair.second.model_run, name) == row[name] for name in _JUDGING)]


def _comparison(score: str, found: Difference) -> Comparison:
    first, second = found.pair.first.model_run, found.pair.second.model_run
    return Comparison(
        model=second.model,
        judge=second.judge,
        judge_trial=second.judge_trial,
        split=found.split,
        score=score,
        first_vintage=first.vintage,
        second_vintage=second.vintage,
        first_mean=found.first_mean,
        second_mean=found.second_mean,
        difference=found.difference,
        ci_low=found.paired.ci_low,
        ci_high=found.paired.ci_high,
        p_value=found.paired.p_value,
        n_tasks=len(found.tasks),
        n_wanted=found.n_wanted,
    )
