"""The live page: how things stand, in words and bars."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flows.report_server.live import Bar, Live, Row, RunState
from flows.run.outcomes import ENDINGS
from tasks.rules.text.numbers import SMALL_MARK, counted, coverage_text, number, rank_notes
from tasks.run.stages import STAGES

_OLD = timedelta(minutes=5)
_LEVELS = {
    "done": "good", "below_bar": "warn", "stopped_at_budget": "warn", "stopped_at_time": "warn", "failed": "bad",
    "killed": "bad", "interrupted": "warn",
}  # fmt: skip


def words(live: Live, index: Path) -> dict[str, Any]:
    """What the page says.

    Args:
        live: how things stand.
        index: the first page of the report, which may not be there.
    """
    n_running = len(live.in_progress)
    headline = "No run is in progress." if live.last else "No run is in progress, and no run is stored here yet."
    if n_running:
        headline = f"{counted(n_running, 'run')} {'is' if n_running == 1 else 'are'} in progress."
    boards = _boards(live.ranking)
    age = None if live.published_at is None else live.at - live.published_at
    return {
        "headline": headline,
        "at": f"{live.at:%H:%M:%S} UTC",
        "published": "Nothing is published yet." if age is None else f"Results were published {_span(age)} ago.",
        "is_old": bool(live.in_progress) and age is not None and age > _OLD,
        "runs": [_run(run, live.at) for run in live.in_progress],
        "last": None if live.last is None else _ended(live.last, live.at, index),
        "ranking": [(title, [_ranked(row) for row in rows]) for title, rows in boards.items()],
        "rank_notes": list(rank_notes([*boards.values()])),
        "small_note": "",
        "is_preliminary": bool(live.in_progress),
        "trouble": live.trouble,
    }


def _run(run: RunState, until: datetime | None) -> dict[str, Any]:
    return {
        "id": run.run_id,
        "name": f"Night {run.night}" if run.night else "Run",
        "benchmark": run.benchmark,
        "command": run.command,
        "has_begun": run.started_at is None,
        "facts": _facts(run, until),
        "bars": [_bar(bar) for bar in run.bars],
        "calls": [_call(call) for call in run.calls],
        "trouble": run.trouble,
    }


def _ended(run: RunState, now: datetime, index: Path) -> dict[str, Any]:
    written = datetime.fromtimestamp(index.stat().st_mtime, UTC) if index.is_file() else None
    end = "" if run.ended_at is None else f" ({_span(now - run.ended_at)} ago)"
    return _run(run, run.ended_at) | {
        "outcome": (ENDINGS[run.outcome].state_name if run.outcome in ENDINGS else run.outcome.capitalize()) + end,
        "level": _LEVELS.get(run.outcome, ""),
        "report": None if written is None else f"{written:%Y-%m-%d %H:%M} UTC",
    }


def _facts(run: RunState, until: datetime | None) -> list[tuple[str, str, str]]:
    """(name, value, what stands beside it); `until` is None where it is not known when the run ended."""
    if run.started_at is None:
        return []
    whole = [bar for bar in run.bars if not bar.is_part]
    wanted, done = (sum(getattr(bar, name) for bar in whole) for name in ("wanted", "done"))
    n_calls, n_failed = (sum(call[name] for call in run.calls) for name in ("calls", "failed_calls"))
    cap = "no cap" if run.max_usd is None else f"cap {_usd(run.max_usd)}"
    unpriced = f", {counted(run.n_unpriced, 'call')} of unknown price" if run.n_unpriced else ""
    causes = ", ".join(f"{n_cells:,} {cause}" for cause, n_cells in run.failures.most_common())
    so_far = " so far" if run.is_living else ""
    scope = f"{done:,} of {wanted:,} responses and verdicts, those of earlier runs included" if wanted else ""
    attempts = counted(n_failed, "failed attempt") if n_failed else "no failed attempt" if n_calls else "none yet"
    took = "–" if until is None else _span(until - run.started_at)
    return [
        ("Coverage", coverage_text(done / wanted if wanted else None), scope),
        ("Failed", f"{run.failures.total():,}", causes),
        (f"Cost{so_far}", _usd(run.cost_usd), cap + unpriced),
        (f"Calls{so_far}", f"{n_calls:,}", attempts),
        ("Time", took, f"started {run.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _bar(bar: Bar) -> dict[str, Any]:
    """A bar with its pieces in per cent: a name, where it begins, and how wide it is."""
    wanted = max(1, bar.wanted)
    done, failed = (100 * n_cells / wanted for n_cells in (bar.done, bar.n_failed))
    pieces = [("done", "0.000%", f"{done:.3f}%"), ("failed", f"{done:.3f}%", f"{failed:.3f}%")]
    what = bar.model or "all models"
    return {
        "name": what if bar.is_part or not bar.judge else f"{bar.judge} on {what}",
        "kind": "" if bar.is_part else "verdicts" if bar.judge else "responses",
        "pieces": pieces,
        "share": coverage_text(bar.done / wanted),
        "count": f"{bar.done:,} of {bar.wanted:,}",
        "failed": ", ".join(f"{n_cells:,} {cause}" for cause, n_cells in bar.failures.most_common()),
    }


def _call(call: dict[str, Any]) -> list[str]:
    unpriced = f" ({call['unpriced_calls']:,} of unknown price)" if call["unpriced_calls"] else ""
    purpose = STAGES[call["purpose"]].makes if call["purpose"] in STAGES else call["purpose"]
    return [
        purpose, call["called_model"], f"{call['calls']:,}", f"{call['failed_calls']:,}",
        _usd(call["cost_usd"]) + unpriced,
    ]  # fmt: skip


def _boards(ranking: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each split under each judging, below a heading."""
    boards: dict[str, list[Row]] = {}
    for row in ranking:
        boards.setdefault(f"{row['split']}, judged by {row['judging']}", []).append(row)
    return boards


def _ranked(row: dict[str, Any]) -> dict[str, Any]:
    model = row["model"] if row["vintage"] == "base" else f"{row['model']} of {row['vintage']}"
    has_interval = row["ci_low"] is not None and row["ci_high"] is not None
    return {
        "rank": "–" if row["rank"] is None else str(row["rank"]),
        "model": model, "mean": "–" if row["mean_score"] is None else number(row["mean_score"]),
        "interval": f"{number(row['ci_low'])} to {number(row['ci_high'])}{SMALL_MARK if row['is_small'] else ''}"
        if has_interval else "–",
        "tasks": f"{row['n_tasks']:,} of {row['n_tasks_wanted']:,}",
        "coverage": coverage_text(row["coverage"]),
    }  # fmt: skip


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
