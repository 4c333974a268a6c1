"""Reading the published database: one consistent state, never a lock on it."""

import atexit
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from warehouse.files.damage import is_database_whole
from warehouse.files.errors import WarehouseError, cause_of, nothing_in
from warehouse.parts.engine import memory, quieten, quoted

DATABASE = "prbench.duckdb"
Parameters = Sequence[Any] | Mapping[str, Any] | None

_IDLE: list[duckdb.DuckDBPyConnection] = []
"""Databases in memory that no reader uses now: to make one takes several times as long as to attach a file to it."""
_MOST_IDLE = 2
_OF_QUERIES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.SyntaxException)


class Reader:
    """A read-only view of the state that was published when it was opened.

    The file is attached to a database in memory of its own, so a reader in the same process as a publisher sees
    what is published at the moment it is opened. Several threads may ask it at once. Close it, or use it in a `with`
    block.
    """

    def __init__(self, path: Path, spill: Path | None = None) -> None:
        """Open a file; with a folder `spill`, queries that need much memory use the disk there instead."""
        if not path.exists():
            raise WarehouseError(nothing_in(path))
        self._is_own = spill is not None
        self._base = _base() if spill is None else _bounded(spill)
        self._connection = self._base.cursor()
        try:
            self._connection.execute(f"attach {quoted(path)} as published (read_only)")
        except duckdb.Error as error:
            self._connection.close()
            self._base.close()
            raise WarehouseError(_unreadable(path, error)) from error
        self._path = path
        self._is_open = True

    def table(self, query: str, parameters: Parameters = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns and the rows of a query."""
        with self._run(query, parameters) as cursor:
            return [column[0] for column in cursor.description or []], cursor.fetchall()

    def rows(self, query: str, parameters: Parameters = None) -> list[dict[str, Any]]:
        """The rows of a query, as dictionaries."""
        columns, rows = self.table(query, parameters)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def select(self, relation: str, columns: str = "*", *, order: str = "all", **where: Any) -> list[dict[str, Any]]:
        """Return the rows of one table or view whose columns have these values.

        A list allows each of its values; None finds NULL. Relation, columns and order are text of our own.
        """
        conditions = [
            f"{name} in (select unnest(${name}))" if isinstance(value, list) else f"{name} is not distinct from ${name}"
            for name, value in where.items()
        ]
        of = f" where {' and '.join(conditions)}" if conditions else ""
        return self.rows(f"select {columns} from {relation}{of} order by {order}", where)

    def value(self, query: str, parameters: Parameters = None) -> Any:
        """The first value of a query's first row; None where there is no row."""
        with self._run(query, parameters) as cursor:
            row = cursor.fetchone()
            return row[0] if row else None

    def arrays(self, query: str, parameters: Parameters = None) -> dict[str, Any]:
        """The columns of a query as NumPy arrays, by name."""
        with self._run(query, parameters) as cursor:
            return dict(cursor.fetchnumpy())

    def arrow(self, query: str, parameters: Parameters = None) -> Any:
        """The rows of a query as a PyArrow table."""
        with reporting_damage(self._path), self._connection.cursor() as cursor:
            cursor.execute("use published")
            return cursor.sql(query, params=parameters).to_arrow_table()

    def frame(self, query: str, parameters: Parameters = None) -> Any:
        """The rows of a query as a pandas frame."""
        with self._run(query, parameters) as cursor:
            return cursor.df()

    @contextlib.contextmanager
    def _run(self, query: str, parameters: Parameters) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run a query on a connection of its own, so that several threads can ask at once."""
        with reporting_damage(self._path), self._connection.cursor() as cursor:
            cursor.execute("use published")
            yield cursor.execute(query, parameters)

    def close(self) -> None:
        """Close the file."""
        if self._is_open:
            self._is_open = False
            try:
                self._connection.close()
            finally:
                if self._is_own:
                    self._base.close()
                else:
                    _give_back(self._base)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextlib.contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Turn what DuckDB says of a damaged file into one line that says what to do."""
    try:
        yield
    except duckdb.Error as error:
        # What is wrong with a query says nothing about the file.
        if isinstance(error, _OF_QUERIES) or is_database_whole(path):
            raise
        raise WarehouseError(_unreadable(path, error)) from error


def _unreadable(path: Path, error: duckdb.Error) -> str:
    if is_database_whole(path):
        return f"{path}: cannot be opened: {cause_of(error, path)}"
    return f"{path}: is damaged; `prbench aggregate` rebuilds it from the stored parts, without a model call"


def _base() -> duckdb.DuckDBPyConnection:
    """A database in memory to attach a file to."""
    with contextlib.suppress(IndexError):
        return _IDLE.pop()
    made = duckdb.connect()
    quieten(made)
    return made


def _bounded(spill: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory of bounded size, for one reader: others would find its folder gone."""
    made = duckdb.connect(config={"temp_directory": str(spill), "memory_limit": memory()})
    quieten(made)
    return made


def _give_back(base: duckdb.DuckDBPyConnection) -> None:
    try:
        base.execute("detach published")
    except duckdb.Error:
        # Whatever holds the file closes it with the database that it is attached to.
        base.close()
        return
    _IDLE.append(base)
    while len(_IDLE) > _MOST_IDLE:
        _IDLE.pop(0).close()


@atexit.register
def _close_idle() -> None:
    # DuckDB's binding prints pages about what is still there at the end.
    while _IDLE:
        _IDLE.pop().close()
