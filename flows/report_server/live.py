"""What goes on in a warehouse: runs in progress with their coverage, calls and cost, and the ranking so far."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import sql
from flows.execution import job_of_run
from flows.run.outcomes import KILLED, RUNNING
from tasks.config.job import Job
from tasks.figures.queries import JUDGING
from tasks.figures.scope import Scope, open_scope
from tasks.figures.shown.overview import LEADERBOARD
from tasks.maintain.upkeep import run_cost
from tasks.measures import SCORE
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.coverage import Covered, coverage
from warehouse import Reader, Warehouse, WarehouseError

Row = dict[str, Any]


def cells_of(job: Job) -> list[Covered]:
    """The coverage of what a run is to fill; nothing before there are admitted tasks.

    Raises:
        PipelineError: the data set is not ingested.
    """
    judges = {None, *(judge.label for judge in job.settings.judges)}
    # What was judged elsewhere, or answered elsewhere in part, is not for the run to do.
    return [cell for cell in coverage(job) if cell.due and cell.judge in judges]


_SCORED = ("split", "vintage", "model_config_hash", *JUDGING)
_scored = itemgetter("model_label", *_SCORED)


def ranking_so_far(job: Job, reader: Reader) -> list[Row]:
    """The leaderboard, without models that nothing is known of.

    Stored intervals belong to the values that they were computed from; for newer values they are computed here, by the
    same function.
    """
    scope = open_scope(job, reader)
    rows = [row for row in scope.rows_of(LEADERBOARD, {"is_hard": False}) if row["n_tasks"]]
    if all(row["ci_low"] is not None for row in rows):
        return rows
    new = _new_intervals(scope)
    return [row | new.get(_scored(row), {}) if row["ci_low"] is None else row for row in rows]


def _new_intervals(scope: Scope) -> dict[tuple[Any, ...], Row]:
    """The intervals of whole scores that are not stored, by what they are of, clipped as the mean is."""
    score = scope.benchmark.primary_score.score_name
    fresh = SCORE.fresh(scope.reader, breakdown="all", score_name=score)
    measured = {row["figure_id"]: row for row in fresh if row["measure"] == SCORE.name}
    figures = scope.reader.select(
        "intermediate.mean_scores", f"figure_id, mean_floor, model as model_label, {', '.join(_SCORED)}",
        benchmark=scope.benchmark.name, dataset_revision=scope.revision, figure_id=[*measured],
    )  # fmt: skip
    return {
        _scored(figure): {"is_small": row["is_small"]}
        | {end: max(row[end], figure["mean_floor"]) for end in ("ci_low", "ci_high") if row[end] is not None}
        for figure in figures
        for row in [measured[figure["figure_id"]]]
    }


@dataclass(frozen=True)
class RunState:
    """A run as far as is known.

    Attributes:
        is_living: whether its process is at work.
        row: what is published of it in `runs`.
        job: what it does; None where that is not known.
        cells: how much of what it wants is there.
        calls: what the ledger knows now, by purpose and model that was called; `calls` are attempts.
        trouble: why its coverage is not known.
    """

    run_id: str
    is_living: bool = True
    outcome: str = RUNNING
    row: Mapping[str, Any] = field(default_factory=dict)
    job: Job | None = None
    cells: Sequence[Covered] = ()
    calls: Sequence[Row] = ()
    trouble: str | None = None

    @property
    def n_due(self) -> int:
        """How many responses and verdicts it wants."""
        return sum(cell.due for cell in self.cells)

    @property
    def n_done(self) -> int:
        """How many of them are there."""
        return sum(cell.done for cell in self.cells)

    @property
    def failures(self) -> Counter[str]:
        """How many cells failed of each cause."""
        return sum((cell.failures for cell in self.cells), Counter[str]())


@dataclass(frozen=True)
class Live:
    """All that the live page shows; `published_at` is None where nothing is published yet."""

    at: datetime
    published_at: datetime | None = None
    in_progress: Sequence[RunState] = ()
    last: RunState | None = None
    ranking: Sequence[Row] = ()
    alerts: Sequence[Row] = ()
    trouble: str | None = None


class LiveView:
    """Looks at a job's warehouse; what rests on the published state is computed once for each publishing."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._warehouse = Warehouse(job.warehouse)
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._states: Sequence[RunState] = ()
        self._published = Live(datetime.now(UTC))

    def now(self) -> Live:
        """How things stand; `trouble` says what cannot be read."""
        with self._lock:
            at, living = datetime.now(UTC), self._warehouse.living_runs()
            begun = [RunState(run_id) for run_id in living]
            try:
                stat = self._warehouse.database.stat()
            except FileNotFoundError:
                return Live(at, in_progress=begun)
            published_at = datetime.fromtimestamp(stat.st_mtime, UTC)
            try:
                self._renew((stat.st_ino, stat.st_mtime_ns, stat.st_size))
                runs = [self._as_now(each, living) for each in self._states]
                known = {run.run_id for run in runs}
                runs += [self._as_now(run, living) for run in begun if run.run_id not in known]
            except (PipelineError, WarehouseError, UsageError) as error:
                return Live(at, published_at, begun, trouble=str(error))
            ended = [run for run in runs if not run.is_living]
            last = max(ended, key=lambda run: run.row["ended_at"] or run.row["started_at"] or at, default=None)
            in_progress = [run for run in runs if run.is_living]
            return replace(self._published, at=at, published_at=published_at, in_progress=in_progress, last=last)

    def _renew(self, stamp: tuple[int, ...]) -> None:
        """Read the published state, if it is another one than last time."""
        if self._stamp == stamp:
            return
        with self._warehouse.reader() as reader:
            states = [self._state(row) for row in reader.rows(sql.read("queries/look/live_runs"))]
            alerts = reader.select("alerts", order="created_at desc, alert_id", benchmark=self._job.settings.benchmark)
            published = Live(datetime.now(UTC), alerts=alerts)
            try:
                published = replace(published, ranking=ranking_so_far(self._job, reader))
            except (PipelineError, UsageError) as error:
                published = replace(published, trouble=f"The ranking is not known: {error}")
        self._stamp, self._states, self._published = stamp, states, published

    def _state(self, row: Row) -> RunState:
        """A run with what is published of it."""
        state = RunState(row["run_id"], is_living=False, outcome=row["outcome"], row=row)
        try:
            state = replace(state, job=job_of_run(self._job, row))
            return replace(state, cells=cells_of(state.job)) if state.job else state
        except ValueError:
            return replace(state, trouble="another version of prbench wrote its record")
        except (PipelineError, UsageError) as error:
            return replace(state, trouble=str(error))

    def _as_now(self, run: RunState, living: Sequence[str]) -> RunState:
        """A run as it is now, with what its calls came to; one without a sign of life was killed."""
        is_living = run.outcome == RUNNING and run.run_id in living
        outcome = KILLED if run.outcome == RUNNING and not is_living else run.outcome
        return replace(run, is_living=is_living, outcome=outcome, calls=run_cost(self._job, run.run_id))
