"""Results for Python, as data frames: read the tables, leaderboards and differences of a warehouse
or publication.

```python
from tasks.results import open_results

with open_results("warehouse/data") as results:
    print(results.leaderboard())
```
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean

if TYPE_CHECKING:
    from tasks.config.job import Job
    from warehouse import Reader

# Heavy libraries are imported where they are used, so that importing this module is fast.

_DIFFERENCE = (
    ("string", ("first", "second", "split", "score")),
    ("double", ("first_mean", "second_mean", "difference", "ci_low", "ci_high")),
    ("double", ("p_value", "p_adjusted", "smallest_detectable")),
    ("bool", ("is_significant", "is_small")),
    ("int64", ("n_tasks", "n_tasks_wanted", "n_differing")),
    ("string", ("sentence", "first_model", "first_vintage", "first_judge", "first_grading")),
    ("int64", ("first_judge_trial",)),
    ("string", ("second_model", "second_vintage", "second_judge", "second_grading")),
    ("int64", ("second_judge_trial",)),
)
"""The columns of a difference, by type, in their order."""
Format = Literal["polars", "arrow", "pandas"]
"""The kind of data frame that a method returns."""


class Results(AbstractContextManager["Results"]):
    """The published results of a warehouse; created by `open_results`.

    Methods return a Polars data frame, or with `format` a PyArrow table or a pandas data frame.
    Each call reads what is published at that moment, and nothing is written. Call `close` at the
    end, or use a `with` block.

    Attributes:
        benchmark: the benchmark of `leaderboard` and `diff`.
        revision: the revision of its data set.
        splits: the splits of that revision.
    """

    def __init__(self, job: "Job", closing: ExitStack) -> None:
        self.benchmark: str = job.benchmark
        self.revision: str = job.data.revision
        self.splits: tuple[str, ...] = job.data.splits
        self._job = job
        self._closing = closing

    # `format` is the natural name for callers (noqa: A002).
    def tables(self, *, format: Format = "polars") -> Any:  # noqa: A002
        """Return the tables and views: `name`, `kind` (mart or stored), and the `meaning` of a
        row.
        """
        import pyarrow as pa

        return _frame_of(pa.Table.from_pylist(_listed()), format)

    def table(self, name: str, *, format: Format = "polars") -> Any:  # noqa: A002
        """Return all rows of a table or view.

        Raises:
            UsageError: there is no such table.
        """
        names = [row["name"] for row in _listed()]
        if name.lower() not in names:
            raise UsageError(f"there is no table or view {name}{did_you_mean(name, names)}")
        with self._reader() as reader:
            return _frame_of(reader.arrow(f"from main.{name.lower()}"), format)

    def sql(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        format: Format = "polars",  # noqa: A002
    ) -> Any:
        """Return the rows of a query in DuckDB's SQL.

        Args:
            query: a reading query; `?` or `$name` are parameters.
            parameters: a list for `?`, a mapping for `$name`.

        Raises:
            UsageError: it is not a single reading query.
        """
        _refuse_writing(query)
        with self._reader() as reader:
            return _frame_of(reader.arrow(query, parameters), format)

    def leaderboard(
        self,
        *,
        by: str | None = None,
        score: str | None = None,
        vintage: str | None = None,
        is_hard: bool = False,
        models: Sequence[str] = (),
        judges: Sequence[str] = (),
        format: Format = "polars",  # noqa: A002
    ) -> Any:
        """Return the rows of `prbench leaderboard`: models with score, interval, coverage and rank.

        Args:
            by: a breakdown, such as `category` or `topic`.
            score: default the benchmark's primary score.
            vintage: default the current one of each model; `all` for every one.
            is_hard: on the latest own hard subset instead of the splits.
            models: only these, by label.
            judges: only these, by label.

        Raises:
            UsageError: there is no such score, breakdown, model, judge or vintage.
        """
        from tasks.figures.scope import Scope
        from tasks.figures.shown.leaderboard import LEADERBOARD, board_parameters
        from tasks.rules.identity import EVERY_VINTAGE

        vintages = (vintage,) if vintage and vintage != EVERY_VINTAGE else ()
        job = self._narrowed(models, judges, vintages)
        with self._reader() as reader:
            scope = Scope(job, reader, vintage, is_hard=is_hard, score=score)
            query = scope.query_of(LEADERBOARD, board_parameters(scope, by))
            return _frame_of(reader.arrow(query), format)

    def diff(
        self,
        *names: str,
        of: str | None = None,
        score: str | None = None,
        vintage: str | None = None,
        is_hard: bool = False,
        models: Sequence[str] = (),
        judges: Sequence[str] = (),
        format: Format = "polars",  # noqa: A002
    ) -> Any:
        """Return the rows of `prbench diff`: the first name compared with each of the others,
        paired by task.

        There is a row for each comparison and split: both means, their difference (second minus
        first) with its interval, the p-value and the corrected p-value, a sentence with the result,
        and the model, vintage and judge of each side.

        Args:
            names: two or more models, judges, vintages, ...
            of: the kind of the names; by default the kind to which all of them belong.
            score: default the benchmark's primary score.
            vintage: compare in this vintage, or in each one (`all`); a model that is not sampled
                each night counts with its base responses. By default models are compared in the
                current vintage of each. Leave it out to compare vintages.
            is_hard: on the latest own hard subset instead of the splits.
            models: only these, by label.
            judges: only these, by label.

        Raises:
            UsageError: fewer than two names, or a name does not exist.
        """
        import pyarrow as pa

        from tasks.compare.differences import compare, rows_of
        from tasks.compare.pairs import Comparison

        if len(names) < 2:
            raise UsageError("diff: give at least two names to compare, such as two models")
        job = self._narrowed(models, judges)
        comparison = Comparison(job, names, of, score, is_hard, vintage)
        with self._reader() as reader:
            result = compare(reader, comparison)
        # Columns have a type even if they have no value.
        schema = pa.schema([(column, kind) for kind, columns in _DIFFERENCE for column in columns])
        return _frame_of(pa.Table.from_pylist(rows_of(result), schema=schema), format)

    def close(self) -> None:
        """Close the database, and delete the copy from a store."""
        self._closing.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reader(self) -> "Reader":
        from warehouse import Warehouse

        return Warehouse(self._job.warehouse).reader()

    def _narrowed(
        self,
        models: Sequence[str],
        judges: Sequence[str],
        vintages: Sequence[str] = (),
    ) -> "Job":
        """Return the job narrowed to these models and judges; the vintages are only checked.

        Raises:
            UsageError: one of them is not stored.
        """
        from tasks.run.stored_data import on_stored_data

        choices = {"named_models": tuple(models) or None, "named_judges": tuple(judges) or None}
        job = self._job.model_copy(update=choices)
        return on_stored_data(job, {"model": models, "judge": judges, "vintage": vintages})


def open_results(
    location: str | PathLike[str],
    *,
    benchmark: str | None = None,
    revision: str | None = None,
) -> Results:
    """Open the published results at a location.

    Args:
        location: the folder of a warehouse; the folder or address of a publication of `prbench
            publish`, such as `s3://bucket/board`; or a `.duckdb` file. From an address the database
            is copied to a temporary folder, which `close` deletes.
        benchmark: needed if the warehouse holds several.
        revision: the revision of the data set, or its beginning; by default the one with the most
            verdicts.

    Raises:
        UsageError: the location, benchmark or revision does not exist.
        WarehouseError: nothing is published there, or the database is damaged.
    """
    from tasks.results.opening import open_job

    return Results(*open_job(str(location), benchmark, revision))


def _listed() -> list[dict[str, str]]:
    """Return the marts, and then the stored tables."""
    import sql
    from warehouse import TABLES

    rows = []
    for name, description in sorted(sql.schema()["marts"].items()):
        rows.append({"name": name, "kind": "mart", "meaning": description["meaning"]})
    for name, table in sorted(TABLES.items()):
        rows.append({"name": name, "kind": "stored", "meaning": table.meaning})
    return rows


def _refuse_writing(query: str) -> None:
    """Refuse a query that does more than read.

    Raises:
        UsageError: it is not a single query that reads.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"sql: {str(error).strip().splitlines()[0]}") from error
    reads = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
    if len(statements) != 1 or statements[0].type not in reads:
        raise UsageError("sql: give one query that reads, such as `select * from leaderboard`")


def _frame_of(table: Any, kind: str) -> Any:
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    if kind != "polars":
        raise UsageError(f"format {kind!r}: must be polars, arrow or pandas")
    import polars

    return polars.from_arrow(table)
