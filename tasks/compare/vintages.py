"""The differences between a vintage of a model and the last comparable vintage before it."""

from operator import itemgetter
from typing import Any

from tasks.compare.differences import compare, rows_of
from tasks.compare.pairs import Comparison
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import PipelineError
from tasks.rules.identity import JUDGE_CONFIG
from tasks.rules.statistics.comparison import holm
from warehouse import Reader, Row, Warehouse

_IDENTITY = ("model", "model_config_hash", *JUDGE_CONFIG)
"""A model under a judge: columns that are equal on both sides of a comparison."""
Identity = tuple[Any, ...]
"""The values of `_IDENTITY`."""
_identity_of = itemgetter(*_IDENTITY)
_second_identity_of = itemgetter(*(f"second_{name}" for name in _IDENTITY))


def comparable_pairs(job: Job, reader: Reader, vintage: str) -> list[Row]:
    """Return the models and judges of a vintage that have an earlier vintage to compare with.

    A row has a model under a judge (`_IDENTITY`), and the last comparable vintage (`last_vintage`).
    """
    rows = reader.query("queries/nightly/pairs", {**job.key, "vintage": vintage})
    return [row for row in rows if row["last_vintage"]]


def differences_of(job: Job, reader: Reader, pair: Row, vintage: str) -> list[Row]:
    """Return the differences of a pair by split; none, with a notice, if it cannot be compared."""
    names = {"named_models": (pair["model"],), "named_judges": (pair["judge"],)}
    last_vintage = pair["last_vintage"]
    comparison = Comparison(job.model_copy(update=names), (last_vintage, vintage), "vintage")
    try:
        rows = rows_of(compare(reader, comparison))
    except PipelineError as error:
        notice(f"{pair['model']} is not compared with {last_vintage}: {error}")
        return []
    return [row for row in rows if _second_identity_of(row) == _identity_of(pair)]


def changes(job: Job, vintage: str | None = None) -> list[Row]:
    """Return the changes of each model from its last comparable vintage to its current one.

    `vintage` replaces the current one. There is a row for each judge and split: the compared model
    run, its `earlier` and its `later` vintage, and the interval and p-value of the difference
    (Holm-corrected over all rows). A model with one vintage has no row.
    """
    differences: list[Row] = []
    with Warehouse(job.warehouse).reader() as reader:
        splits_by_run = _shown_splits(job, reader, vintage)
        for current_vintage in sorted({run_vintage for run_vintage, _ in splits_by_run}):
            for pair in comparable_pairs(job, reader, current_vintage):
                # A model may have another current vintage on another split.
                splits = splits_by_run.get((current_vintage, _identity_of(pair)))
                if splits:
                    rows = differences_of(job, reader, pair, current_vintage)
                    differences += [row for row in rows if row["split"] in splits]
    adjusted = holm([row["p_value"] for row in differences])
    rows = []
    for difference, p_adjusted in zip(differences, adjusted, strict=True):
        rows.append(
            {
                **{name: difference[f"second_{name}"] for name in _IDENTITY},
                "split": difference["split"],
                "ci_low": difference["ci_low"],
                "ci_high": difference["ci_high"],
                "earlier": difference["first_vintage"],
                "later": difference["second_vintage"],
                "p_adjusted": p_adjusted,
            }
        )
    return rows


def _shown_splits(
    job: Job,
    reader: Reader,
    vintage: str | None,
) -> dict[tuple[str, Identity], set[str]]:
    """Return the splits of the leaderboard by vintage and identity.

    Without a `vintage`, each model has its current one.
    """
    leaderboard_of_judges = (
        "(from leaderboard where counts_as_judge([], benchmark, dataset_revision, judge,"
        " judge_config_hash))"
    )
    conditions: dict[str, Any] = dict(job.key)
    if job.named_models is not None:
        conditions["model"] = list(job.named_models)
    if job.named_judges is not None:
        conditions["judge"] = list(job.named_judges)
    if vintage is None:
        conditions["is_latest"] = True
    else:
        conditions["vintage"] = vintage
    columns = f"distinct {', '.join(_IDENTITY)}, vintage, split"
    splits_by_run: dict[tuple[str, Identity], set[str]] = {}
    hidden_judges = job.hidden_judges
    for row in reader.select(leaderboard_of_judges, columns, **conditions):
        if row["judge"] in hidden_judges:
            continue
        splits = splits_by_run.setdefault((row["vintage"], _identity_of(row)), set())
        splits.add(row["split"])
    return splits_by_run
