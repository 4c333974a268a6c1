"""The differences between a vintage of a model and the last comparable vintage before it."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import sql
from tasks.compare.differences import compare, rows_of
from tasks.compare.pairs import Comparison
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import PipelineError
from tasks.rules.statistics.comparison import holm
from warehouse import Reader, Warehouse

_JUDGE_COLUMNS = (
    "model",
    "model_config_hash",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
)
"""Columns that are equal on both sides of a comparison."""
_DIFFERENCE_COLUMNS = ("first_vintage", "second_vintage", "split", "ci_low", "ci_high")


@dataclass(frozen=True)
class VintagePair:
    """A vintage of a model under one judge, and the last comparable vintage before it."""

    model: str
    judge: str
    identity: tuple[Any, ...]
    """The values of `_JUDGE_COLUMNS`."""
    last_vintage: str
    vintage: str


def comparable_pairs(job: Job, reader: Reader, vintage: str) -> list[VintagePair]:
    """Return the models and judges of a vintage that have an earlier vintage to compare with."""
    rows = reader.rows(sql.read("queries/nightly/pairs"), {**job.key, "night": vintage})
    return [
        VintagePair(
            model=row["model"],
            judge=row["judge"],
            identity=tuple(row[name] for name in _JUDGE_COLUMNS),
            last_vintage=row["last_vintage"],
            vintage=vintage,
        )
        for row in rows
        if row["last_vintage"]
    ]


def differences_of(job: Job, reader: Reader, pair: VintagePair) -> list[dict[str, Any]]:
    """Return the differences of a pair by split; none, with a notice, if it cannot be compared."""
    narrowed = job.model_copy(update={"named_models": (pair.model,), "named_judges": (pair.judge,)})
    comparison = Comparison(narrowed, (pair.last_vintage, pair.vintage), "vintage")
    try:
        rows = rows_of(compare(reader, comparison))
    except PipelineError as error:
        notice(f"{pair.model} is not compared with {pair.last_vintage}: {error}")
        return []
    return [row for row in rows if _second_identity(row) == pair.identity]


def _second_identity(difference: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(difference[f"second_{name}"] for name in _JUDGE_COLUMNS)


def changes(job: Job, vintage: str | None = None) -> list[dict[str, Any]]:
    """Return the changes of each model from its last comparable vintage to its current one.

    `vintage` replaces the current one. There is a row for each judge and split: the compared model
    runs, and the interval and p-value of the difference (Holm-corrected over all rows). A model
    with one vintage has no row.
    """
    changed: list[dict[str, Any]] = []
    with Warehouse(job.warehouse).reader() as reader:
        splits_by_run = _shown_splits(job, reader, vintage)
        for current in sorted({run_vintage for run_vintage, _ in splits_by_run}):
            for pair in comparable_pairs(job, reader, current):
                # A model may have another current vintage on another split.
                splits = splits_by_run.get((current, pair.identity))
                if splits:
                    rows = differences_of(job, reader, pair)
                    changed += [row for row in rows if row["split"] in splits]
    adjusted = holm([row["p_value"] for row in changed])
    return [
        _change(difference, p_adjusted)
        for difference, p_adjusted in zip(changed, adjusted, strict=True)
    ]


def _shown_splits(
    job: Job, reader: Reader, vintage: str | None
) -> dict[tuple[str, tuple[Any, ...]], set[str]]:
    """Return the splits of the leaderboard by vintage and identity (values of `_JUDGE_COLUMNS`)."""
    judged = (
        "(from leaderboard where counts_as_judge([], benchmark, dataset_revision, judge,"
        " judge_config_hash))"
    )
    chosen: dict[str, Any] = {"is_latest": True} if vintage is None else {"vintage": vintage}
    columns = f"distinct {', '.join(_JUDGE_COLUMNS)}, vintage, split"
    splits_by_run = defaultdict[tuple[str, tuple[Any, ...]], set[str]](set)
    for row in reader.select(judged, columns, **job.key, **chosen):
        identity = tuple(row[name] for name in _JUDGE_COLUMNS)
        splits_by_run[row["vintage"], identity].add(row["split"])
    return dict(splits_by_run)


def _change(difference: dict[str, Any], p_adjusted: float | None) -> dict[str, Any]:
    change = dict(zip(_JUDGE_COLUMNS, _second_identity(difference), strict=True))
    for name in _DIFFERENCE_COLUMNS:
        change[name] = difference[name]
    change["p_adjusted"] = p_adjusted
    return change
