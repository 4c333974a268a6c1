"""Publishing, aggregating and querying at full size: 20 models x 3 trials x 19,356 criteria a
night, and many nights.

The warehouse is compared with a bare DuckDB file that has the same rows and nothing else.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tasks.aggregate import aggregate
from tests.benchmarks.bench import Clock, in_process_of_its_own
from tests.benchmarks.figures import Figure, parse_arguments, print_markdown, report
from tests.benchmarks.synthetic import Size, synthetic_warehouse
from tests.kit import job_on
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

_SCORES = """
    with sums as (
        select response_id, responses.model, responses.task_id, sum(weight * value) as points,
            sum(weight) filter (weight > 0) as positive, count(value) = count(*) as is_complete
        from verdicts inner join responses using (response_id)
        inner join criteria on verdicts.task_id = criteria.task_id and verdicts.criterion_id = criteria.criterion_id
        group by all
    ),
    of_tasks as (
        select model, task_id, avg(points / positive) as value from sums group by all having bool_and(is_complete)
    )
    select model, avg(value) from of_tasks group by model
"""
_STATUS = "select model, status, count(*) from verdicts group by all"
_LOOK_UP = "select status, explanation from verdicts where verdict_id = ?"
_DETAILS = "select * from verdict_details where verdict_id = ?"
_TASK = "select * from verdict_details where task_id = ?"
_JOIN = """
    select * from verdicts inner join responses using (response_id)
    inner join criteria on verdicts.task_id = criteria.task_id and verdicts.criterion_id = criteria.criterion_id
    where verdicts.task_id = ?
"""
_SEVERITIES = "select severity, status, count(*) from verdict_details group by all"
_COPY = "a bare copy of the rows"
_BARE = "the same on a bare file"
_MOST_MB = 1_000.0


@dataclass(frozen=True)
class Build:
    """The cost of building a database of a size: seconds, peak memory of the process, size of the
    file.
    """

    verdicts: int
    aggregate_s: float
    cpu_s: float
    again_s: float
    peak_mb: float
    database_mb: float


def build(folder: Path, size: Size) -> Build:
    """Publish a made-up warehouse, all marts and intervals, from its parts."""
    warehouse = Warehouse(folder)
    forget_parts(warehouse)
    for part in warehouse.store.current_parts("measures"):
        part.unlink()
    job = job_on("sample", folder)
    clock = Clock()
    aggregate(job)
    first = clock.figures(1)
    began_s = time.monotonic()
    aggregate(job)
    again_s = time.monotonic() - began_s
    n_bytes = warehouse.database.stat().st_size
    return Build(
        size.verdicts,
        first.seconds,
        first.cpu_s,
        again_s,
        first.peak_mb,
        n_bytes / 1e6,
    )


def bare_copy(folder: Path) -> float:
    """Make a DuckDB file with the same verdicts, responses and criteria, and nothing else; its CPU
    seconds.
    """
    bare = folder / "bare.duckdb"
    bare.unlink(missing_ok=True)
    store = Warehouse(folder).store
    clock = Clock()
    with duckdb.connect(str(bare)) as connection:
        for name in ("verdicts", "responses", "criteria"):
            connection.execute(
                f"create table {name} as from read_parquet('{store.root / name}/*.parquet')"
            )
    return clock.figures(1).cpu_s


def median_ms(database: Path, query: str, *parameters: Any) -> float:
    """The median of some runs in milliseconds, each on a new connection, as when a person starts a
    query.
    """
    figures = []
    for _ in range(5):
        with duckdb.connect(str(database), read_only=True) as connection:
            began_s = time.monotonic()
            connection.execute(query, list(parameters)).fetchall()
            figures.append(1000 * (time.monotonic() - began_s))
    return statistics.median(figures)


@dataclass(frozen=True)
class QueryTime:
    """The milliseconds of a query on the published database, and those of an equivalent one on the
    bare file.
    """

    name: str
    published_ms: float
    bare_ms: float | None = None


def query_times(folder: Path) -> list[QueryTime]:
    """Measure what people ask most."""
    published = Warehouse(folder).database
    bare = folder / "bare.duckdb"
    with duckdb.connect(str(published), read_only=True) as connection:
        verdict_id, task_id = connection.execute(
            "select verdict_id, task_id from verdicts limit 1 offset 500000"
        ).fetchone() or ("", "")
    scores_ms = median_ms(bare, _SCORES)
    look_up_ms = median_ms(bare, _LOOK_UP, verdict_id)

    def measured(name, query, *parameters, bare_ms=None):
        return QueryTime(name, median_ms(published, query, *parameters), bare_ms)

    leaderboard = "select * from leaderboard order by split, rank"
    by_category = "select * from breakdown_leaderboard where breakdown = 'category'"
    return [
        measured("leaderboard", leaderboard, bare_ms=scores_ms),
        measured("leaderboard by category", by_category),
        measured("severity_leaderboard", "select * from severity_leaderboard"),
        measured("scores from scratch", _SCORES, bare_ms=scores_ms),
        measured("verdicts by status", _STATUS, bare_ms=median_ms(bare, _STATUS)),
        measured("one verdict", _LOOK_UP, verdict_id, bare_ms=look_up_ms),
        measured(
            "one verdict, all beside it",
            _DETAILS,
            verdict_id,
            bare_ms=look_up_ms,
        ),
        measured(
            "details of a task",
            _TASK,
            task_id,
            bare_ms=median_ms(bare, _JOIN, task_id),
        ),
        measured("verdicts by severity", _SEVERITIES),
    ]


def print_builds(builds: Sequence[Build]):
    """Print the cost of each build, and its ratio to linear growth."""
    rows = []
    for cost in builds:
        growth = cost.aggregate_s / builds[0].aggregate_s
        rows.append(
            [
                f"{cost.verdicts:,}",
                f"{cost.aggregate_s:.1f}",
                f"{cost.cpu_s:.1f}",
                f"{growth * builds[0].verdicts / cost.verdicts:.2f}",
                f"{cost.again_s:.2f}",
                f"{cost.peak_mb:.0f}",
                f"{cost.database_mb:.0f}",
            ]
        )
    header = [
        "verdicts",
        "aggregate s",
        "CPU s",
        "to linear",
        "again s",
        "peak MB",
        "database MB",
    ]
    print_markdown(header, rows)


def print_queries(folder: Path, n_vintages: int, cost: Build, *, must_keep: bool):
    """Measure and print the queries on a warehouse, and compare them with the kept figures."""
    copy_cpu_s = in_process_of_its_own(bare_copy, folder)
    print(
        f"\n{n_vintages} vintages, milliseconds; {_COPY} took {copy_cpu_s:.1f} CPU s"
    )
    rows = []
    figures = [
        Figure("aggregate", cost.cpu_s, _COPY, copy_cpu_s),
        Figure("peak memory of aggregate", cost.peak_mb, "1 GB", _MOST_MB, "MB"),
    ]
    for query in query_times(folder):
        cells = [query.name, f"{query.published_ms:.1f}", "", ""]
        if query.bare_ms is not None:
            cells[2:] = [
                f"{query.bare_ms:.1f}",
                f"{query.published_ms / query.bare_ms:.3f}",
            ]
            figures.append(
                Figure(query.name, query.published_ms, _BARE, query.bare_ms, "ms")
            )
        rows.append(cells)
    print_markdown(["query", "published", "bare", "ratio"], rows)
    print(
        report(
            f"speed_warehouse, {cost.verdicts:,} verdicts",
            figures,
            must_keep=must_keep,
        )
    )


def main():
    """Measure and print."""
    options = parse_arguments(
        __doc__,
        keeps=True,
        vintages=([1], "nights of verdicts, one build each"),
        models=20,
        folder=(Path, "keep the made-up warehouses here and use them again"),
    )
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        folders = []
        builds = []
        for n_vintages in options.vintages:
            size = Size(options.models, trials=3, vintages=n_vintages)
            folder = root / f"{options.models}x{n_vintages}"
            in_process_of_its_own(synthetic_warehouse, folder, size)
            folders.append(folder)
            builds.append(in_process_of_its_own(build, folder, size))
        print_builds(builds)
        for n_vintages, folder, cost in zip(
            options.vintages,
            folders,
            builds,
            strict=True,
        ):
            print_queries(folder, n_vintages, cost, must_keep=options.keep)


if __name__ == "__main__":
    main()
