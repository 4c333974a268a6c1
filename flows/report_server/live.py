"""The live page: runs in progress with their coverage, calls and cost, and the ranking so far."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import sql
from flows.execution import job_of_run
from flows.run.outcomes import DONE, ENDINGS, FAILED, KILLED, RUNNING
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.figures.figure import Column, Figure, Interval
from tasks.figures.scope import JUDGE_CONFIG, Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.figures.shown.operations import STATUS, coverage_row
from tasks.maintain.upkeep import run_cost
from tasks.measures import SCORE
from tasks.report.rendering.page_figures import PageFigure, served
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import counted, coverage_text
from tasks.run.coverage import CoverageCell, coverage
from warehouse import Reader, Warehouse, WarehouseError

Row = dict[str, Any]
_SCORED = ("split", "vintage", "model_config_hash", *JUDGE_CONFIG)
_scored = itemgetter("model_label", *_SCORED)


def ranking_so_far(job: Job, reader: Reader) -> list[Row]:
    """Return the leaderboard of the models with a scored task.

    Values without a stored interval are newer than the last aggregation; their intervals are
    computed here, by the same function, and clipped as the mean is.
    """
    scope = Scope(job, reader)
    rows = [row for row in scope.rows_of(LEADERBOARD, {"is_hard": False}) if row["n_tasks"]]
    score = scope.benchmark.primary_score.score_name
    fresh = SCORE.fresh(scope.reader, breakdown="all", score_name=score)
    measured = {row["figure_id"]: row for row in fresh if row["measure"] == SCORE.name}
    figures = scope.reader.select(
        "intermediate.mean_scores",
        f"figure_id, mean_floor, model as model_label, {', '.join(_SCORED)}",
        benchmark=scope.benchmark.name,
        dataset_revision=scope.revision,
        figure_id=[*measured],
    )
    new = {
        _scored(figure): (
            {"is_small": row["is_small"]}
            | {
                end: max(row[end], figure["mean_floor"])
                for end in ("ci_low", "ci_high")
                if row[end] is not None
            }
        )
        for figure in figures
        for row in [measured[figure["figure_id"]]]
    }
    return [row | new.get(_scored(row), {}) if row["ci_low"] is None else row for row in rows]


@dataclass(frozen=True)
class RunState:
    """The known state of a run.

    Attributes:
        outcome: `running` if its process is alive.
        row: its published row of `runs`.
        job: its job; None if unknown.
        cells: coverage of its wanted work.
        calls: attempts in the ledger now, by purpose and called model.
        trouble: the reason why its coverage is unknown.
    """

    run_id: str
    outcome: str = RUNNING
    row: Mapping[str, Any] = field(default_factory=dict)
    job: Job | None = None
    cells: Sequence[CoverageCell] = ()
    calls: Sequence[Row] = ()
    trouble: str | None = None


class LiveView:
    """A view of a job's warehouse for one thread; figures from published data are made once per
    publication.
    """

    def __init__(self, job: Job, index: Path) -> None:
        """Take the job, and the first page of its report, which may not exist."""
        self._job = job
        self._index = index
        self._benchmark = load_benchmark(job.settings.benchmark)
        self._warehouse = Warehouse(job.warehouse)
        self._published = lru_cache(1)(self._read)

    def now(self) -> dict[str, Any]:
        """Return the texts of the page; `trouble` names what cannot be read."""
        at = datetime.now(UTC)
        living = self._warehouse.living_runs()
        published = "Nothing is published yet."
        shown = dict[str, Any]()
        stat = None
        runs = {run_id: RunState(run_id) for run_id in living}
        with suppress(FileNotFoundError):
            stat = self._warehouse.database.stat()
        if stat is not None:
            published = (
                f"Results were published {_span(at - datetime.fromtimestamp(stat.st_mtime, UTC))}"
                " ago."
            )
            try:
                shown, states = self._published((stat.st_ino, stat.st_mtime_ns, stat.st_size))
                runs = {
                    run_id: self._as_now(run, living) for run_id, run in (runs | states).items()
                }
            except (PipelineError, WarehouseError) as error:
                shown = {"trouble": str(error)}
        in_progress = [run for run in runs.values() if run.outcome == RUNNING]
        ended = [run for run in runs.values() if run.outcome != RUNNING]
        last = max(
            ended, key=lambda run: run.row["ended_at"] or run.row["started_at"] or at, default=None
        )
        headline = (
            "No run is in progress."
            if last
            else "No run is in progress, and no run is stored here yet."
        )
        n_running = len(in_progress)
        if n_running:
            headline = (
                f"{counted(n_running, 'run')} {'is' if n_running == 1 else 'are'} in progress."
            )
        return {
            "headline": headline,
            "at": f"{at:%H:%M:%S} UTC",
            "published": published,
            "figures": (),
            "trouble": None,
            "runs": [run_texts(run, at, self._benchmark) for run in in_progress],
            "last": last and run_texts(last, at, self._benchmark),
            "has_report": self._index.is_file(),
            **shown,
        }

    def _read(self, _stamp: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, RunState]]:
        """Return the texts of the page that are published, and the states of runs by their ids."""
        ranking = list[Row]()
        shown = dict[str, Any]()
        with self._warehouse.reader() as reader:
            states = {
                row["run_id"]: self._state(row)
                for row in reader.rows(sql.read("queries/look/live_runs"))
            }
            alerts = reader.select(
                "alerts", order="created_at desc, alert_id", benchmark=self._benchmark.name
            )
            try:
                ranking = ranking_so_far(self._job, reader)
            except PipelineError as error:
                shown["trouble"] = f"The ranking is not known: {error}"
        return (
            shown
            | {"figures": _figures([(RANKING, ranking), (ALERTS, alerts[:20])], self._benchmark)},
            states,
        )

    def _state(self, row: Row) -> RunState:
        """Return the published state of a run."""
        state = RunState(row["run_id"], row["outcome"], row)
        try:
            state = replace(state, job=(job := job_of_run(self._job, row)))
            judges = {None, *(judge.label for judge in job.settings.judges)}
            # Work of other judges, and work that is not due, does not belong to the run.
            return replace(
                state, cells=[cell for cell in coverage(job) if cell.due and cell.judge in judges]
            )
        except ValueError:
            return replace(state, trouble="another version of prbench wrote its record")
        except PipelineError as error:
            return replace(state, trouble=str(error))

    def _as_now(self, run: RunState, living: Sequence[str]) -> RunState:
        """Return the current state of a run with its calls so far; an unfinished run without a
        process was killed.
        """
        outcome = KILLED if run.outcome == RUNNING and run.run_id not in living else run.outcome
        return replace(run, outcome=outcome, calls=run_cost(self._job, run.run_id))


RANKING = replace(
    LEADERBOARD,
    name="ranking",
    says=(
        "The current vintage of each model. While a run is in progress, this rests on the tasks"
        " that are fully judged so far. These may be different tasks for each model, so ranks may"
        " change by more than the intervals suggest."
    ),
    shows=(
        "judge_config split rank model",
        Column("mean_score", few="is_small"),
        Interval("ci"),
        "n_tasks n_tasks_wanted coverage",
    ),
)
CALLS = Figure(
    "calls",
    "Calls and cost",
    "Attempts of calls until now, by purpose and called model. The cost leaves out calls of unknown"
    " price.",
    ("purpose called_model calls failed_calls cost_usd unpriced_calls",),
)
ALERTS = Figure(
    "alerts", "Alerts", "Alerts of the last nights, latest first.", ("night kind detail",)
)


def _figures(
    parts: Sequence[tuple[Figure, Sequence[Any]]], benchmark: Benchmark, of_run: str = ""
) -> list[PageFigure]:
    """Return the figures that have rows; `of_run` makes the names of a run's figures unique."""
    return [
        served(replace(figure, name=figure.name + of_run), rows, benchmark)
        for figure, rows in parts
        if rows
    ]


def run_texts(run: RunState, at: datetime, benchmark: Benchmark) -> dict[str, Any]:
    """Return the texts of the page about a run, as of a moment."""
    night = run.row.get("night")
    cells = [coverage_row(cell) for cell in run.cells]
    n_due = sum(cell.due for cell in run.cells)
    n_done = sum(cell.done for cell in run.cells)
    is_living = run.outcome == RUNNING
    until = at if is_living else run.row["ended_at"]
    ended = f" ({_span(at - until)} ago)" if until else ""
    return {
        "state": run,
        "n_due": n_due,
        "n_done": n_done,
        "name": f"Night {night}" if night else "Run",
        "benchmark": run.job and run.job.settings.benchmark,
        "facts": _facts(run, until, n_done, n_due) if run.row else [],
        "figures": _figures([(STATUS, cells), (CALLS, run.calls)], benchmark, f"-{run.run_id}"),
        "outcome": None if is_living else ENDINGS[run.outcome].state_name + ended,
        "level": {
            DONE: "good",
            FAILED: "bad",
            KILLED: "bad",
        }.get(run.outcome, "warn"),
    }


def _facts(
    run: RunState, until: datetime | None, n_done: int, n_due: int
) -> list[tuple[str, str, str]]:
    """Return facts about a run: name, value, and a note on the value."""
    known = [call["cost_usd"] for call in run.calls if call["cost_usd"] is not None]
    n_unpriced = sum(call["unpriced_calls"] for call in run.calls)
    max_usd = run.job.settings.limits.max_usd if run.job else None
    cap = "no cap" if max_usd is None else f"cap ${max_usd:,.2f}"
    unpriced = f", {counted(n_unpriced, 'call')} of unknown price" if n_unpriced else ""
    scope = f"{n_done:,} of {n_due:,} responses and verdicts, those of earlier runs included"
    return [
        ("Coverage", coverage_text(n_done / n_due if n_due else None), scope if n_due else ""),
        (
            "Cost so far" if run.outcome == RUNNING else "Cost",
            f"${sum(known):,.2f}" if known or not run.calls else "unknown",
            cap + unpriced,
        ),
        (
            "Time",
            "–" if until is None else _span(until - run.row["started_at"]),
            f"started {run.row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        ),
    ]


def _span(span: timedelta) -> str:
    """Return a time in hours, minutes and seconds."""
    return str(timedelta(seconds=max(0, round(span.total_seconds()))))
