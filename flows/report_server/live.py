"""The live page: runs in progress with their coverage, calls and cost, and the ranking so far."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from flows.run.outcomes import DONE, ENDINGS, FAILED, KILLED, RUNNING
from flows.run.record import job_of_run
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.figures.figure import Column, Figure, Interval
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.figures.shown.operations import STATUS, coverage_row
from tasks.maintain.spend import run_cost
from tasks.measures import SCORE
from tasks.report.rendering.page_figures import PageFigure, page_figure_of
from tasks.rules.errors import PipelineError
from tasks.rules.identity import JUDGE_CONFIG
from tasks.rules.text.numbers import counted, coverage_text
from tasks.run.coverage import CoverageCell, coverage
from warehouse import Reader, Row, Warehouse, WarehouseError

_SCORE_KEY = ("split", "vintage", "model_config_hash", *JUDGE_CONFIG)
_score_key_of = itemgetter("model_label", *_SCORE_KEY)
"""Returns what identifies a mean score: its model and the columns above."""


def ranking_so_far(job: Job, reader: Reader) -> list[Row]:
    """Return the leaderboard of the models with a scored task.

    Values without a stored interval are newer than the last aggregation; their intervals are
    computed here, by the same function, and clipped as the mean is.
    """
    scope = Scope(job, reader)
    intervals = _fresh_intervals(scope)
    ranking = []
    for row in scope.rows_of(LEADERBOARD, {"is_hard": False}):
        if row["n_tasks"]:
            interval = intervals.get(_score_key_of(row), {}) if row["ci_low"] is None else {}
            ranking.append({**row, **interval})
    return ranking


def _fresh_intervals(scope: Scope) -> dict[Any, Row]:
    """Return the intervals of mean scores that are not stored, by the identity of the score."""
    score = scope.benchmark.primary_score.score_name
    measures = {}
    for row in SCORE.fresh(scope.reader, breakdown="all", score_name=score):
        if row["measure"] == SCORE.name:
            measures[row["figure_id"]] = row
    mean_scores = scope.reader.select(
        "intermediate.mean_scores",
        f"figure_id, mean_floor, model as model_label, {', '.join(_SCORE_KEY)}",
        **scope.job.key,
        figure_id=list(measures),
    )
    intervals = {}
    for mean_score in mean_scores:
        measure = measures[mean_score["figure_id"]]
        interval = {"is_small": measure["is_small"]}
        for end in ("ci_low", "ci_high"):
            if measure[end] is not None:
                interval[end] = max(measure[end], mean_score["mean_floor"])
        intervals[_score_key_of(mean_score)] = interval
    return intervals


@dataclass
class RunState:
    """The known state of a run.

    Attributes:
        outcome: `running` if its process is alive.
        row: its published row of `runs`; empty if there is none yet.
        job: its job; None if unknown.
        cells: coverage of its wanted work.
        calls: attempts in the ledger now, by purpose and called model.
        trouble: the reason why its coverage is unknown.
    """

    run_id: str
    outcome: str = RUNNING
    row: Row = field(default_factory=dict)
    job: Job | None = None
    cells: Sequence[CoverageCell] = ()
    calls: Sequence[Row] = ()
    trouble: str | None = None


class LiveView:
    """A view of a job's warehouse for one thread.

    Figures from published data are made once per publication.
    """

    def __init__(self, job: Job, index: Path) -> None:
        """Take the job, and the first page of its report, which may not exist."""
        self._job = job
        self._index = index
        self._benchmark = load_benchmark(job.benchmark)
        self._warehouse = Warehouse(job.warehouse)
        self._published = lru_cache(1)(self._read)

    def now(self) -> dict[str, Any]:
        """Return the texts of the page; `trouble` names what cannot be read."""
        moment = datetime.now(UTC)
        living = self._warehouse.living_runs()
        runs = {run_id: RunState(run_id) for run_id in living}
        published = "Nothing is published yet."
        texts: dict[str, Any] = {"figures": (), "trouble": None}
        stat = None
        with suppress(FileNotFoundError):
            stat = self._warehouse.database.stat()
        if stat is not None:
            age = moment - datetime.fromtimestamp(stat.st_mtime, UTC)
            published = f"Results were published {_span(age)} ago."
            try:
                stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                published_texts, states = self._published(stamp)
                texts |= published_texts
                runs |= states
                runs = {run_id: self._as_now(run, living) for run_id, run in runs.items()}
            except (PipelineError, WarehouseError) as error:
                texts["trouble"] = str(error)
        in_progress = [run for run in runs.values() if run.outcome == RUNNING]
        last_run = _last_ended(runs.values())
        return {
            **texts,
            "headline": _headline(len(in_progress), last_run),
            "at": f"{moment:%H:%M:%S} UTC",
            "published": published,
            "runs": [run_texts(run, moment, self._benchmark) for run in in_progress],
            "last": run_texts(last_run, moment, self._benchmark) if last_run else None,
            "has_report": self._index.is_file(),
        }

    def _read(self, _stamp: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, RunState]]:
        """Return the texts of the page that are published, and the states of runs by their ids.

        The stamp of the published database is for the cache: a new one has it read again.
        """
        texts: dict[str, Any] = {}
        ranking = []
        states = {}
        with self._warehouse.reader() as reader:
            for row in reader.query("queries/look/live_runs"):
                states[row["run_id"]] = self._state(row)
            alerts = reader.select(
                "alerts", order="created_at desc, alert_id", benchmark=self._benchmark.name
            )
            try:
                ranking = ranking_so_far(self._job, reader)
            except PipelineError as error:
                texts["trouble"] = f"The ranking is not known: {error}"
        parts = ((RANKING, ranking), (ALERTS, alerts[:20]))
        texts["figures"] = _figures(parts, self._benchmark)
        return texts, states

    def _state(self, row: Row) -> RunState:
        """Return the published state of a run."""
        state = RunState(row["run_id"], row["outcome"], row)
        try:
            job = job_of_run(self._job, row)
            state.job = job
            judges = {None, *job.settings.judge_labels}
            # Work of other judges, and work that is not due, does not belong to the run.
            state.cells = [cell for cell in coverage(job) if cell.due and cell.judge in judges]
        except ValueError:
            state.trouble = "another version of prbench wrote its record"
        except PipelineError as error:
            state.trouble = str(error)
        return state

    def _as_now(self, run: RunState, living: Sequence[str]) -> RunState:
        """Return the current state of a run with its calls so far.

        An unfinished run without a process was killed.
        """
        is_killed = run.outcome == RUNNING and run.run_id not in living
        outcome = KILLED if is_killed else run.outcome
        return replace(run, outcome=outcome, calls=run_cost(self._job, run.run_id))


def _last_ended(runs: Iterable[RunState]) -> RunState | None:
    """Return the run that ended last, if any has ended."""
    ended_runs = [run for run in runs if run.outcome != RUNNING]
    return max(
        ended_runs, key=lambda run: run.row["ended_at"] or run.row["started_at"], default=None
    )


def _headline(n_running: int, last_run: RunState | None) -> str:
    if n_running:
        return f"{counted(n_running, 'run')} {'is' if n_running == 1 else 'are'} in progress."
    if last_run:
        return "No run is in progress."
    return "No run is in progress, and no run is stored here yet."


RANKING = replace(
    LEADERBOARD,
    name="ranking",
    says=(
        "The current vintage of each model. While a run is in progress, this rests on the tasks"
        " that are fully judged so far. These may be different tasks for each model, so ranks may"
        " change by more than the intervals suggest."
    ),
    shows=(
        "judge_config",
        "split",
        "rank",
        "model",
        Column("mean_score", few="is_small"),
        Interval("ci"),
        "n_tasks",
        "n_tasks_wanted",
        "coverage",
    ),
)
CALLS = Figure(
    "calls",
    "Calls and cost",
    "Attempts of calls until now, by purpose and called model. The cost leaves out calls of unknown"
    " price.",
    (
        "purpose",
        "called_model",
        "calls",
        "failed_calls",
        "cost_usd",
        "unpriced_calls",
    ),
)
ALERTS = Figure(
    "alerts",
    "Alerts",
    "Alerts of the last nights, latest first.",
    (
        "night",
        "kind",
        "detail",
    ),
)


def _figures(
    parts: Sequence[tuple[Figure, Sequence[Any]]],
    benchmark: Benchmark,
    suffix: str = "",
) -> list[PageFigure]:
    """Return the figures that have rows; a suffix makes the names of a run's figures unique."""
    return [
        page_figure_of(replace(figure, name=figure.name + suffix), rows, benchmark)
        for figure, rows in parts
        if rows
    ]


def run_texts(run: RunState, moment: datetime, benchmark: Benchmark) -> dict[str, Any]:
    """Return the texts of the page about a run, as of a moment."""
    night = run.row.get("night")
    cells = [coverage_row(cell) for cell in run.cells]
    n_due = sum(cell.due for cell in run.cells)
    n_done = sum(cell.done for cell in run.cells)
    end = moment
    outcome = None
    if run.outcome != RUNNING:
        end = run.row["ended_at"]
        outcome = ENDINGS[run.outcome].state_name
        if end:
            outcome += f" ({_span(moment - end)} ago)"
    return {
        "state": run,
        "n_due": n_due,
        "n_done": n_done,
        "name": f"Night {night}" if night else "Run",
        "benchmark": run.job.benchmark if run.job else None,
        "facts": _facts(run, end, n_done, n_due) if run.row else [],
        "figures": _figures([(STATUS, cells), (CALLS, run.calls)], benchmark, f"-{run.run_id}"),
        "outcome": outcome,
        "level": _LEVELS.get(run.outcome, "warn"),
    }


_LEVELS = {
    DONE: "good",
    FAILED: "bad",
    KILLED: "bad",
}
"""Outcome -> level of a notice about it."""


def _facts(
    run: RunState,
    end: datetime | None,
    n_done: int,
    n_due: int,
) -> list[tuple[str, str, str]]:
    """Return facts about a run: name, value, and a note on the value."""
    coverage_fact = ("Coverage", "–", "")
    if n_due:
        work = f"{n_done:,} of {n_due:,} responses and verdicts, those of earlier runs included"
        coverage_fact = ("Coverage", coverage_text(n_done / n_due), work)
    started_at = run.row["started_at"]
    time = "–" if end is None else _span(end - started_at)
    started = f"started {started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return [coverage_fact, _cost_fact(run), ("Time", time, started)]


def _cost_fact(run: RunState) -> tuple[str, str, str]:
    name = "Cost so far" if run.outcome == RUNNING else "Cost"
    costs = [call["cost_usd"] for call in run.calls if call["cost_usd"] is not None]
    cost = f"${sum(costs):,.2f}" if costs or not run.calls else "unknown"
    max_usd = run.job.settings.limits.max_usd if run.job else None
    note = "no cap" if max_usd is None else f"cap ${max_usd:,.2f}"
    n_unpriced = sum(call["unpriced_calls"] for call in run.calls)
    if n_unpriced:
        note += f", {counted(n_unpriced, 'call')} of unknown price"
    return name, cost, note


def _span(span: timedelta) -> str:
    """Return a time in hours, minutes and seconds."""
    return str(timedelta(seconds=max(0, round(span.total_seconds()))))
