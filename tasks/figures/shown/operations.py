"""Stored data and its cost: coverage, spend, runs, disk space; and the benchmarks that can be run.

The page of history has each model's scores over time, changes of the setup, and the runs with their
cost.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.dataset.source import sample_of
from tasks.figures import charts
from tasks.figures.figure import (
    Column,
    ColumnGroup,
    Figure,
    Interval,
    Parameters,
    Row,
    Rows,
    grouped,
)
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.figures.shown.successions import BRIDGED_HISTORY
from tasks.maintain.spend import daily_spend, latest_runs
from tasks.maintain.tidying import disk_use
from tasks.rules.errors import UsageError
from tasks.run.coverage import CoverageCell, coverage


def latest_points(rows: Rows) -> Rows:
    """Return the ten latest vintages of each model on each split under each judge, for the table;
    the CSV has all.
    """
    latest: list[Row] = []
    for points in grouped(rows, "split", "judged_by", "label").values():
        latest += points[-10:]
    return latest


_HISTORY = Figure(
    "history",
    "Score over time",
    "Mean score of each model from vintage to vintage, with its 95 % interval. Points on one line"
    " are comparable: it ends where the data set, model configuration, judge, template or grading"
    " changed, as a dashed line says. A red triangle is a night in which the judge had drifted. The"
    " complete tasks may differ from night to night; the overview says which changes are"
    " significant.",
    (
        Column("judged_by", "Judge"),
        "split",
        Column("label", "Model"),
        "first_response_at",
        "vintage",
        "mean_score",
        Interval("ci"),
        "hidden_mean_score",
        Interval("hidden_ci"),
        "change",
        "changed",
        "is_drifted",
        "n_tasks",
        "n_tasks_wanted",
        "coverage",
        "revision",
        "configuration",
        "judge_configuration",
        "template",
        "grading",
    ),
    charts.over_time(
        "split",
        only=lambda row: row["n_points"] > 1,
        x="first_response_at",
        value="mean_score",
        colour="label",
        line="line",
        changed="changed",
        marked="is_drifted",
        tips=["label", "vintage", "mean_score", "ci_low", "ci_high", "n_tasks", "changed"],
    ),
    listed=latest_points,
    essential=["label", "vintage", "mean_score", "ci_low", "change", "n_tasks", "coverage"],
    boards=["judged_by", "split"],
    query="history/history",
)
_COSTS = Figure(
    "night_costs",
    "Cost of each night",
    "Cost of each night's calls by purpose, with discarded attempts, without calls of unknown"
    " price.",
    (
        "night",
        "purpose",
        "cost_usd",
        "calls",
        "failed_calls",
        "unpriced_calls",
        ColumnGroup(
            "Tokens",
            [Column("prompt_tokens", "in"), "cached_tokens", Column("completion_tokens", "out")],
        ),
    ),
    charts.bars(
        required="cost_usd",
        name="night",
        value="cost_usd",
        colour="purpose",
        is_upright=True,
    ),
    empty="No night has made a call yet; prbench nightly and prbench serve run nights.",
    reach="warehouse",
    essential=["night", "purpose", "cost_usd", "calls", "failed_calls", "unpriced_calls"],
    query="history/night_costs",
)
_RUNS = Figure(
    "runs",
    "Runs",
    "All runs but the one that writes the report, latest first, and how each ended: below_bar means"
    " done, but with data quality or coverage below the minimum. The cost leaves out calls of"
    " unknown price.",
    (
        "started_at",
        "night",
        "command",
        "outcome",
        "responses",
        "verdicts",
        "calls",
        "cost_usd",
        "unpriced_calls",
        "minutes",
        "run_id",
    ),
    listed=lambda rows: rows[:200],
    reach="warehouse",
    essential=["started_at", "command", "outcome", "responses", "verdicts", "cost_usd"],
    query="history/runs",
)

HISTORY = Page(
    "history",
    "History",
    "The score of each model over time, other changes, and the output and cost of the runs.",
    (_HISTORY, BRIDGED_HISTORY, _COSTS, _RUNS),
)


def coverage_rows(scope: Scope, parameters: Parameters) -> list[dict[str, Any]]:
    """Return the coverage of the configured models and judges, or with `only_stored` of the stored
    ones.
    """
    cells = coverage(scope.job, only_stored=parameters["only_stored"])
    return [coverage_row(cell) for cell in cells]


def coverage_row(cell: CoverageCell) -> dict[str, Any]:
    """Return a row of the coverage matrix."""
    causes = ", ".join(f"{number} {cause}" for cause, number in sorted(cell.failures.items()))
    return {
        "model": cell.model,
        "vintage": cell.vintage,
        "trial": cell.trial,
        "judge": cell.judge or "(responses)",
        "judge_trial": cell.judge_trial,
        "wanted": cell.wanted,
        "done": cell.done,
        "missing": cell.missing,
        "skipped": cell.skipped,
        "failed": cell.failures.total(),
        "share": cell.share,
        "causes": causes,
    }


def _moment(text: str | None) -> datetime | None:
    """Return the moment of a text such as `7d`, `24h` or a date; a date or time without a zone is
    in UTC.

    Raises:
        UsageError: it is none of these.
    """
    if text is None:
        return None
    span = re.fullmatch(r"([1-9]\d{0,4})([dh])", text)
    if span:
        hours_per_unit = 24 if span[2] == "d" else 1
        return datetime.now(UTC) - timedelta(hours=int(span[1]) * hours_per_unit)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"since {text}: give 7d, 24h, or a date such as 2026-11-01") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def benchmark_rows() -> list[dict[str, Any]]:
    """Return a row for each benchmark."""
    rows = []
    for benchmark in map(load_benchmark, benchmark_names()):
        row = {
            "benchmark": benchmark.name,
            "title": benchmark.title,
            "gradings": list(benchmark.gradings),
            "scores": [score.score_name for score in benchmark.scores],
            "ranks": benchmark.primary_score.score_name,
            "checks": len(benchmark.invariants),
            "hub": benchmark.default_dataset_id,
            "sample": sample_of(benchmark.name) is not None,
        }
        rows.append(row)
    return rows


STATUS = Figure(
    "status",
    "Coverage",
    "Finished, failed and missing work of each model, trial and judge. Rows with `(responses)`"
    " instead of a judge count the model's responses, the others its verdicts. Coverage is done /"
    " wanted, rounded down.",
    (
        "model",
        "vintage",
        "trial",
        "judge",
        "judge_trial",
        "wanted",
        "done",
        "missing",
        "skipped",
        "failed",
        Column("share", "Coverage", "coverage"),
        "causes",
    ),
    compute=coverage_rows,
    parameters={"only_stored": False},
    essential=["model", "judge", "judge_trial", "missing", "failed", "share", "causes"],
    boards=["vintage", "trial"],
)
SPEND = Figure(
    "spend_by_day",
    "Spend, including discarded attempts, without calls of unknown price",
    "The spend of each day (UTC) and called model, including runs in progress.",
    (
        "day",
        "called_model",
        "calls",
        "failed_calls",
        "unpriced_calls",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_usd",
    ),
    compute=lambda scope, parameters: daily_spend(scope.job, _moment(parameters["since"])),
    parameters={"since": None},
    empty="nothing yet",
    reach="warehouse",
    essential=["day", "called_model", "calls", "failed_calls", "unpriced_calls", "cost_usd"],
)
LATEST_RUNS = Figure(
    "latest_runs",
    "Runs, latest first",
    "The latest runs, or all since a moment; a run whose process has disappeared is `killed`.",
    (
        "run_id",
        "started_at",
        "ended_at",
        "command",
        "night",
        "outcome",
        "responses",
        "verdicts",
        "cost_usd",
        "unpriced_calls",
    ),
    compute=lambda scope, parameters: latest_runs(scope.job, _moment(parameters["since"])),
    parameters={"since": None},
    empty="nothing yet",
    reach="warehouse",
    essential=["started_at", "command", "outcome", "responses", "verdicts", "cost_usd"],
)
DISK = Figure(
    "disk",
    "Disk space",
    "The files and bytes of a warehouse: each table, the ledger, the database, and everything"
    " else.",
    (
        "what",
        "n_files",
        "n_bytes",
    ),
    compute=lambda scope, _: disk_use(scope.job),
    empty="nothing yet",
    reach="warehouse",
)
BENCHMARKS = Figure(
    "benchmarks",
    "Benchmarks",
    "All benchmarks, including your own.",
    (
        "benchmark",
        Column("title", "Title"),
        "gradings",
        "scores",
        "ranks",
        "checks",
        "hub",
        "sample",
    ),
    compute=lambda scope, parameters: benchmark_rows(),
    notes=lambda _: ["The first grading is the default."],
    reach="warehouse",
    essential=["benchmark", "title", "ranks", "checks", "sample"],
)
