"""The ranking while a run goes on, with intervals for the values as they are now."""

from collections.abc import Mapping, Sequence
from typing import Any

import sql
from tasks.aggregate import stale_intervals
from tasks.benchmarks import load_benchmark
from tasks.config import Job
from tasks.report.content.edition import labelled_judgings
from warehouse import Reader

_JUDGING = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")


def ranking_so_far(job: Job, reader: Reader) -> list[dict[str, Any]]:
    """The latest vintage of each model on each split under each judging, by rank.

    `judging` is its name in the report. Stored intervals belong to the values that they were computed from; for newer
    values they are computed here, by the same function.
    """
    score = load_benchmark(job.settings.benchmark).primary_score.score_name
    rows = reader.rows(sql.read("questions/look/ranking_so_far"), {
        "benchmark": job.settings.benchmark,
        "revision": job.data.revision,
        "score": score,
        "splits": list(job.settings.dataset.splits),
        "models": list(job.named_models or ()),
        "judges": list(job.named_judges or (judge.label for judge in job.settings.judges)),
    })  # fmt: skip
    new = {}
    if any(row["ci_low"] is None for row in rows):
        new = {each["figure_id"]: each for each in stale_intervals(reader, "all", score)}
    named = _labels(rows)
    return [
        _with_interval(row, new.get(row.pop("figure_id")), row.pop("mean_floor")) | {"judging": named[_judging(row)]}
        for row in rows
    ]


def _labels(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], str]:
    """The label of each judging."""
    judgings = [dict(zip(_JUDGING, key, strict=True)) for key in dict.fromkeys(map(_judging, rows))]
    return {_judging(each): each["judging"] for each in labelled_judgings(judgings)}


def _judging(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _JUDGING)


def _with_interval(row: dict[str, Any], new: dict[str, Any] | None, floor: float) -> dict[str, Any]:
    if new is None:
        return row
    # Clipped as the mean is.
    low, high = (None if new[name] is None else max(new[name], floor) for name in ("ci_low", "ci_high"))
    return row | {"ci_low": low, "ci_high": high, "is_small": new["is_small"]}
