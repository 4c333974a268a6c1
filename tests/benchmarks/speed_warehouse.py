"""Publishing, aggregating and querying at full size: 20 models x 3 trials x 19,356 criteria a
night, and many nights.

The warehouse is compared with a bare DuckDB file that has the same rows and nothing else.
"""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tasks.aggregate import aggregate
from tests.benchmarks.bench import Clock, in_process_of_its_own
from tests.benchmarks.figures import Figure, arguments, markdown, report
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
    for part in warehouse.store.standing("measures"):
        part.unlink()
    job = job_on("sample", folder)
    clock = Clock()
    aggregate(job)
    first = clock.figures(1)
    began_s = time.monotonic()
    aggregate(job)
    again_s = time.monotonic() - began_s
    n_bytes = warehouse.database.stat().st_size
    return Build(size.verdicts, first.seconds, first.cpu_s, again_s, first.peak_mb, n_bytes / 1e6)


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


def queries(folder: Path) -> list[tuple[str, float, float | None]]:
    """Name of a query, its milliseconds on the published database, and those of an equivalent one
    on the bare file.
    """
    published = Warehouse(folder).database
    bare = folder / "bare.duckdb"
    with duckdb.connect(str(published), read_only=True) as connection:
        (verdict,) = connection.execute(
            "select verdict_id from verdicts limit 1 offset 500000"
        ).fetchone() or ("",)
    from_scratch = median_ms(bare, _SCORES)
    looked_up = median_ms(bare, _LOOK_UP, verdict)
    by_category = "select * from breakdown_leaderboard where breakdown = 'category'"
    return [
        (
            "leaderboard",
            median_ms(published, "select * from leaderboard order by split, rank"),
            from_scratch,
        ),
        ("leaderboard by category", median_ms(published, by_category), None),
        ("severity_leaderboard", median_ms(published, "select * from severity_leaderboard"), None),
        ("scores from scratch", median_ms(published, _SCORES), from_scratch),
        ("verdicts by status", median_ms(published, _STATUS), median_ms(bare, _STATUS)),
        ("one verdict", median_ms(published, _LOOK_UP, verdict), looked_up),
        ("one verdict, all beside it", median_ms(published, _DETAILS, verdict), looked_up),
    ]


def main() -> None:
    """Measure and print."""
    given = arguments(
        __doc__,
        keeps=True,
        vintages=([1], "nights of verdicts, one build each"),
        models=20,
        folder=(Path, "keep the made-up warehouses here and use them again"),
    )
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        folders = {n: root / f"{given.models}x{n}" for n in given.vintages}
        sizes = {n: Size(given.models, 3, n) for n in folders}
        for n, folder in folders.items():
            in_process_of_its_own(synthetic_warehouse, folder, sizes[n])
        builds = [in_process_of_its_own(build, folder, sizes[n]) for n, folder in folders.items()]
        base = builds[0]
        markdown(
            ["verdicts", "aggregate s", "CPU s", "to linear", "again s", "peak MB", "database MB"],
            [
                (
                    f"{b.verdicts:,}",
                    f"{b.aggregate_s:.1f}",
                    f"{b.cpu_s:.1f}",
                    f"{b.aggregate_s / base.aggregate_s * base.verdicts / b.verdicts:.2f}",
                    f"{b.again_s:.2f}",
                    f"{b.peak_mb:.0f}",
                    f"{b.database_mb:.0f}",
                )
                for b in builds
            ],
        )
        for number, folder, built in zip(given.vintages, folders.values(), builds, strict=True):
            copy_cpu_s = in_process_of_its_own(bare_copy, folder)
            print(f"\n{number} vintages, milliseconds; {_COPY} took {copy_cpu_s:.1f} CPU s")
            query_ms = queries(folder)
            cells = (
                (f"{bare:.1f}", f"{ours / bare:.3f}") if bare else ("", "")
                for _, ours, bare in query_ms
            )
            rows = (
                (name, f"{ours:.1f}", *beside)
                for (name, ours, _), beside in zip(query_ms, cells, strict=True)
            )
            markdown(["query", "published", "bare", "ratio"], rows)
            figures = [
                Figure("aggregate", built.cpu_s, _COPY, copy_cpu_s),
                Figure("peak memory of aggregate", built.peak_mb, "1 GB", _MOST_MB, "MB"),
                *(
                    Figure(name, ours, _BARE, bare, "ms")
                    for name, ours, bare in query_ms
                    if bare is not None
                ),
            ]
            print(
                report(
                    f"speed_warehouse, {built.verdicts:,} verdicts", figures, must_keep=given.keep
                )
            )


if __name__ == "__main__":
    main()
