"""What goes on in a warehouse: runs in progress, coverage, calls, cost, and the ranking so far."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sql
from flows.execution import job_of_run
from flows.report_server.coverage_bars import Bar, bars_of, with_fresh
from flows.report_server.ranking import ranking_so_far
from flows.run.outcomes import KILLED, RUNNING
from tasks.config import Job
from tasks.maintain import run_cost
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Reader, Warehouse, WarehouseError

Row = dict[str, Any]


@dataclass(frozen=True)
class RunState:
    """A run as far as is known.

    Attributes:
        is_living: whether its process is at work.
        bars: how much of what it wants is there.
        calls: what the ledger knows now, by purpose and model that was called; `calls` are attempts.
        cost_usd: of all calls so far with a known price; None where no price is known.
        max_usd: its cap.
        trouble: why its coverage is not known.
    """

    run_id: str
    is_living: bool
    outcome: str = RUNNING
    benchmark: str | None = None
    command: str | None = None
    night: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    bars: Sequence[Bar] = ()
    calls: Sequence[Row] = ()
    cost_usd: float | None = 0.0
    n_unpriced: int = 0
    max_usd: float | None = None
    trouble: str | None = None

    @property
    def failures(self) -> Counter[str]:
        """How many cells failed of each cause."""
        return sum((bar.failures for bar in self.bars if not bar.is_part), Counter[str]())


@dataclass(frozen=True)
class Live:
    """All that the live page shows; `published_at` is None where nothing is published yet."""

    at: datetime
    published_at: datetime | None = None
    in_progress: Sequence[RunState] = ()
    last: RunState | None = None
    ranking: Sequence[Row] = ()
    trouble: str | None = None


@dataclass
class _Published:
    """What rests on one published state."""

    stamp: tuple[int, ...]
    ranking: Sequence[Row] = ()
    states: Sequence[RunState] = ()
    trouble: str | None = None


class LiveView:
    """Looks at a job's warehouse; what rests on the published state is computed once for each publishing."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._warehouse = Warehouse(job.warehouse)
        self._lock = threading.Lock()
        self._published = _Published(())
        self._jobs: dict[str, Job] = {}

    def now(self) -> Live:
        """How things stand; `trouble` says what cannot be read."""
        with self._lock:
            at, living = datetime.now(UTC), self._warehouse.living_runs()
            try:
                stat = self._warehouse.database.stat()
            except FileNotFoundError:
                return Live(at, in_progress=[RunState(run_id, True) for run_id in living])
            published_at = datetime.fromtimestamp(stat.st_mtime, UTC)
            try:
                self._renew((stat.st_ino, stat.st_mtime_ns, stat.st_size))
                runs = [self._with_calls(each) for each in self._states(living)]
            except (PipelineError, WarehouseError, UsageError) as error:
                return Live(at, published_at, [RunState(run_id, True) for run_id in living], trouble=str(error))
            ended = [run for run in runs if not run.is_living]
            last = max(ended, key=lambda run: _end(run, at), default=None)
            in_progress = [run for run in runs if run.is_living]
            return Live(at, published_at, in_progress, last, self._published.ranking, self._published.trouble)

    def _renew(self, stamp: tuple[int, ...]) -> None:
        """Read the published state, if it is another one than last time."""
        if self._published.stamp == stamp:
            return
        with self._warehouse.reader() as reader:
            found = _Published(stamp)
            found.states = [self._state(reader, row) for row in reader.rows(sql.read("questions/look/live_runs"))]
            try:
                found.ranking = ranking_so_far(self._job, reader)
            except (PipelineError, UsageError) as error:
                found.trouble = f"The ranking is not known: {error}"
        self._published = found

    def _state(self, reader: Reader, row: Row) -> RunState:
        """A run with what is published of it."""
        common = {name: row[name] for name in ("run_id", "command", "night", "started_at", "ended_at", "outcome")}
        try:
            job = self._jobs[row["run_id"]] = self._jobs.get(row["run_id"]) or job_of_run(self._job, row)
            given = {**common, "benchmark": job.settings.benchmark, "max_usd": job.settings.limits.max_usd}
        except ValueError:
            return RunState(is_living=False, trouble="another version of prbench wrote its record", **common)
        try:
            return RunState(is_living=False, bars=bars_of(job, reader), **given)
        except (PipelineError, UsageError) as error:
            return RunState(is_living=False, trouble=str(error), **given)

    def _states(self, living: Sequence[str]) -> list[RunState]:
        """The runs as they are now: those at work, also without a row yet, and those that are not."""
        states = []
        for state in self._published.states:
            is_running, is_living = state.outcome == RUNNING, state.run_id in living
            outcome = KILLED if is_running and not is_living else state.outcome
            states.append(replace(state, is_living=is_running and is_living, outcome=outcome))
        known = {state.run_id for state in states}
        return states + [RunState(run_id, True) for run_id in living if run_id not in known]

    def _with_calls(self, run: RunState) -> RunState:
        """A run with what its calls came to until now."""
        calls = run_cost(self._job, run.run_id)
        known = [call["cost_usd"] for call in calls if call["cost_usd"] is not None]
        return replace(
            run,
            calls=calls,
            bars=with_fresh(run.bars, calls, self._jobs.get(run.run_id)) if run.is_living else run.bars,
            cost_usd=sum(known) if known or not calls else None,
            n_unpriced=sum(call["unpriced_calls"] for call in calls),
        )


def _end(run: RunState, now: datetime) -> datetime:
    return run.ended_at or run.started_at or now
