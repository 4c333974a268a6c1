"""What goes on in a warehouse: runs in progress, coverage, calls, cost, and the ranking so far."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from typing import Any

import sql
from flows.execution import job_of_run
from flows.run.outcomes import KILLED, RUNNING
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.figures.queries import JUDGING
from tasks.figures.scope import labelled_judgings
from tasks.maintain.upkeep import run_cost
from tasks.measures import SCORE
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.coverage import Covered, coverage
from warehouse import Reader, Warehouse, WarehouseError


@dataclass(frozen=True)
class Bar:
    """The responses of a model (no `judge`), the verdicts of a judge, or those on one model.

    Attributes:
        model: with its vintage where that is not the base one; None for all models.
        is_part: whether it is a part of the bar of its judge.
    """

    wanted: int
    done: int
    failures: Counter[str]
    model: str | None
    judge: str | None
    is_part: bool = False

    @property
    def n_failed(self) -> int:
        """Cells that failed."""
        return sum(self.failures.values())


def bars_of(job: Job) -> list[Bar]:
    """The bars of a run, responses first; none before there are admitted tasks.

    Raises:
        PipelineError: the data set is not ingested.
    """
    cells: dict[str | None, dict[str, list[Covered]]] = {}
    judges = {None, *(judge.label for judge in job.settings.judges)}
    # What was judged elsewhere, or answered elsewhere in part, is not for the run to do.
    for cell in (cell for cell in coverage(job) if cell.due and cell.judge in judges):
        cells.setdefault(cell.judge, {}).setdefault(cell.model_name, []).append(cell)
    bars = [_bar(of_model, model, None) for model, of_model in cells.pop(None, {}).items()]
    for judge, by_model in cells.items():
        parts = [_bar(of_model, model, judge, is_part=True) for model, of_model in by_model.items()]
        if len(parts) == 1:
            bars.append(replace(parts[0], is_part=False))
        else:
            bars += [_bar([*chain(*by_model.values())], None, judge), *parts]
    return bars


def _bar(cells: Sequence[Covered], model: str | None, judge: str | None, *, is_part: bool = False) -> Bar:
    failures = sum((cell.failures for cell in cells), Counter[str]())
    wanted, done = sum(cell.due for cell in cells), sum(cell.done for cell in cells)
    return Bar(wanted, done, failures, model, judge, is_part)


_judging = itemgetter(*JUDGING)


def ranking_so_far(job: Job, reader: Reader) -> list[dict[str, Any]]:
    """The latest vintage of each model on each split under each judging, by rank.

    `judging` is its name in the report. Stored intervals belong to the values that they were computed from; for newer
    values they are computed here, by the same function.
    """
    score = load_benchmark(job.settings.benchmark).primary_score.score_name
    rows = reader.rows(sql.read("queries/look/ranking_so_far"), {
        "benchmark": job.settings.benchmark,
        "revision": job.data.revision,
        "score": score,
        "splits": list(job.settings.dataset.splits),
        "models": list(job.named_models or ()),
        "judges": list(job.named_judges or (judge.label for judge in job.settings.judges)),
    })  # fmt: skip
    new = {}
    if any(row["ci_low"] is None for row in rows):
        fresh = SCORE.fresh(reader, breakdown="all", score_name=score)
        new = {each["figure_id"]: each for each in fresh if each["measure"] == SCORE.name}
    judgings = [dict(zip(JUDGING, key, strict=True)) for key in dict.fromkeys(map(_judging, rows))]
    named = {_judging(each): each["judging"] for each in labelled_judgings(judgings)}
    for row in rows:
        row["judging"] = named[_judging(row)]
        measured, floor = new.get(row.pop("figure_id")), row.pop("mean_floor")
        if measured:
            row["is_small"] = measured["is_small"]
            for end in ("ci_low", "ci_high"):  # clipped as the mean is
                row[end] = None if measured[end] is None else max(measured[end], floor)
    return rows


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
            last = max(ended, key=lambda run: run.ended_at or run.started_at or at, default=None)
            in_progress = [run for run in runs if run.is_living]
            return Live(at, published_at, in_progress, last, self._published.ranking, self._published.trouble)

    def _renew(self, stamp: tuple[int, ...]) -> None:
        """Read the published state, if it is another one than last time."""
        if self._published.stamp == stamp:
            return
        with self._warehouse.reader() as reader:
            found = _Published(stamp)
            found.states = [self._state(row) for row in reader.rows(sql.read("queries/look/live_runs"))]
            try:
                found.ranking = ranking_so_far(self._job, reader)
            except (PipelineError, UsageError) as error:
                found.trouble = f"The ranking is not known: {error}"
        self._published = found

    def _state(self, row: Row) -> RunState:
        """A run with what is published of it."""
        common = {name: row[name] for name in ("run_id", "command", "night", "started_at", "ended_at", "outcome")}
        try:
            job = job_of_run(self._job, row)
            given = {**common, "benchmark": job.settings.benchmark, "max_usd": job.settings.limits.max_usd}
        except ValueError:
            return RunState(is_living=False, trouble="another version of prbench wrote its record", **common)
        try:
            return RunState(is_living=False, bars=bars_of(job), **given)
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
            cost_usd=sum(known) if known or not calls else None,
            n_unpriced=sum(call["unpriced_calls"] for call in calls),
        )
