"""The live page: how things stand, in words and as figures."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flows.report_server.live import Live, RunState
from flows.run.outcomes import ENDINGS
from tasks.benchmarks.base import Benchmark
from tasks.figures.columns import columns
from tasks.figures.figure import Figure
from tasks.figures.shown.operations import STATUS, coverage_row
from tasks.figures.shown.overview import LEADERBOARD
from tasks.report.rendering.drawn import Drawn, served
from tasks.rules.text.numbers import counted, coverage_text, rank_notes

_OLD = timedelta(minutes=5)
_LEVELS = {
    "done": "good", "below_bar": "warn", "stopped_at_budget": "warn", "stopped_at_time": "warn", "failed": "bad",
    "killed": "bad", "interrupted": "warn",
}  # fmt: skip
_MOST_ALERTS = 20
RANKING = replace(
    LEADERBOARD,
    name="ranking",
    says="The latest vintage of each model. While a run is in progress, this rests on the tasks that are fully judged "
    "so far. These may be different tasks for each model, so ranks may change by more than the intervals suggest.",
    columns=columns("judging split rank model mean_score ci_low ci_high is_small n_tasks n_tasks_wanted coverage"),
)
CALLS = Figure(
    "calls",
    "Calls and cost",
    "Attempts of calls until now, by what they were made for and the model that was called. The cost leaves out calls "
    "of unknown price.",
    columns("purpose called_model calls failed_calls cost_usd unpriced_calls"),
)
ALERTS = Figure(
    "alerts",
    "Alerts",
    "What somebody had to know of the last nights, latest first.",
    columns("night kind detail"),
    is_table=True,
)


def words(live: Live, index: Path, benchmark: Benchmark) -> dict[str, Any]:
    """What the page says.

    Args:
        live: how things stand.
        index: the first page of the report, which may not be there.
        benchmark: what the ranking is of.
    """
    n_running = len(live.in_progress)
    headline = "No run is in progress." if live.last else "No run is in progress, and no run is stored here yet."
    if n_running:
        headline = f"{counted(n_running, 'run')} {'is' if n_running == 1 else 'are'} in progress."
    age = None if live.published_at is None else live.at - live.published_at
    boards = {(row["judging"], row["split"]) for row in live.ranking}
    ranked = [[row for row in live.ranking if (row["judging"], row["split"]) == board] for board in sorted(boards)]
    return {
        "headline": headline,
        "at": f"{live.at:%H:%M:%S} UTC",
        "published": "Nothing is published yet." if age is None else f"Results were published {_span(age)} ago.",
        "is_old": bool(live.in_progress) and age is not None and age > _OLD,
        "runs": [_run(run, live.at, benchmark) for run in live.in_progress],
        "last": None if live.last is None else _ended(live.last, live.at, index, benchmark),
        "figures": [
            *_figures((RANKING, live.ranking), (ALERTS, live.alerts[:_MOST_ALERTS]), benchmark=benchmark),
        ],
        "rank_notes": [*rank_notes(ranked)],
        "trouble": live.trouble,
    }


def _figures(*parts: tuple[Figure, Sequence[Any]], benchmark: Benchmark, run_id: str = "") -> list[Drawn]:
    """Figures that have rows; those of a run have names of their own."""
    return [
        served(replace(figure, name=f"{figure.name}-{run_id}" if run_id else figure.name), rows, benchmark)
        for figure, rows in parts
        if rows
    ]


def _run(run: RunState, until: datetime | None, benchmark: Benchmark) -> dict[str, Any]:
    night, of = run.row.get("night"), [coverage_row(cell) for cell in run.cells]
    return {
        "state": run,
        "name": f"Night {night}" if night else "Run",
        "benchmark": run.job and run.job.settings.benchmark,
        "facts": _facts(run, until) if run.row else [],
        "figures": _figures((STATUS, of), (CALLS, run.calls), benchmark=benchmark, run_id=run.run_id),
    }


def _ended(run: RunState, now: datetime, index: Path, benchmark: Benchmark) -> dict[str, Any]:
    written = datetime.fromtimestamp(index.stat().st_mtime, UTC) if index.is_file() else None
    ended_at = run.row["ended_at"]
    end = "" if ended_at is None else f" ({_span(now - ended_at)} ago)"
    return _run(run, ended_at, benchmark) | {
        "outcome": (ENDINGS[run.outcome].state_name if run.outcome in ENDINGS else run.outcome.capitalize()) + end,
        "level": _LEVELS.get(run.outcome, ""),
        "report": None if written is None else f"{written:%Y-%m-%d %H:%M} UTC",
    }


def _facts(run: RunState, until: datetime | None) -> list[tuple[str, str, str]]:
    """(name, value, what stands beside it); `until` is None where it is not known when the run ended."""
    n_calls, n_failed, n_unpriced = (
        sum(call[name] for call in run.calls) for name in ("calls", "failed_calls", "unpriced_calls")
    )
    known = [call["cost_usd"] for call in run.calls if call["cost_usd"] is not None]
    max_usd = run.job.settings.limits.max_usd if run.job else None
    cap = "no cap" if max_usd is None else f"cap {_usd(max_usd)}"
    unpriced = f", {counted(n_unpriced, 'call')} of unknown price" if n_unpriced else ""
    causes = ", ".join(f"{n_cells:,} {cause}" for cause, n_cells in run.failures.most_common())
    so_far = " so far" if run.is_living else ""
    scope = f"{run.n_done:,} of {run.n_due:,} responses and verdicts, those of earlier runs included"
    attempts = counted(n_failed, "failed attempt") if n_failed else "no failed attempt" if n_calls else "none yet"
    return [
        ("Coverage", coverage_text(run.n_done / run.n_due if run.n_due else None), scope if run.n_due else ""),
        ("Failed", f"{run.failures.total():,}", causes),
        (f"Cost{so_far}", _usd(sum(known) if known or not run.calls else None), cap + unpriced),
        (f"Calls{so_far}", f"{n_calls:,}", attempts),
        ("Time", "–" if until is None else _span(until - run.row["started_at"]),
         f"started {run.row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"),
    ]  # fmt: skip


def _usd(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def _span(span: timedelta) -> str:
    """A time in its two largest units."""
    left, parts = max(0, round(span.total_seconds())), list[str]()
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        n_units, left = divmod(left, seconds)
        if n_units or parts or unit == "s":
            parts.append(f"{n_units} {unit}")
    return " ".join(parts[:2])
