"""DuckDB in memory for work on parts, and the published database: one consistent state, without a
lock.
"""

import atexit
import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

import sql
from warehouse.errors import WarehouseError, explaining, nothing_in
from warehouse.files import is_database_whole
from warehouse.parts import PartNames
from warehouse.tables import TABLES

PARTS = "published_parts"
"""The table of a database with the names of the parts that it contains."""
STAMP = "published_from"
"""The table of a database with the stamp of the code that published it."""
Row = dict[str, Any]
"""A row of a table or query: column -> value."""
Parameters = Sequence[Any] | Mapping[str, Any] | None


def memory_limit(n_bytes: int = 0, least_mb: int = 1200) -> str:
    """Return the memory limit for work on parts or a file of `n_bytes` in total; other work runs
    beside it.

    Larger data spills to disk, but joins of more than 30 million verdicts (2 GB) need more memory
    even for that.
    """
    return f"{round(max(least_mb, 0.6 * n_bytes / 1e6))}MB"


@contextlib.contextmanager
def engine(spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that spills to the folder `spill`, which is removed at the end."""
    try:
        # The order of rows has no meaning, and preserving it takes a third of the time.
        with connect(
            memory_limit=memory_limit(), temp_directory=str(spill), preserve_insertion_order=False
        ) as connection:
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def has_row(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Return whether a query has a row."""
    return bool(connection.execute(f"{query} limit 1").fetchall())


def connect(**settings: str | bool) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database.

    It does not look for extensions on the network, which takes seconds, and draws no progress bars.
    """
    quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config={**quiet, **settings})
    # In a notebook, DuckDB needs ipywidgets for the bar; without them it refuses this setting.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")
    return connection


def quoted(text: object) -> str:
    """Return a SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


_IDLE: list[duckdb.DuckDBPyConnection] = []
"""Unused in-memory databases: creating one takes several times as long as attaching a file."""
_QUERY_ERRORS = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.SyntaxException,
)


class Reader(contextlib.AbstractContextManager["Reader"]):
    """A read-only view of the state that was published when it was opened.

    The file is attached to an in-memory database of its own, so a reader in the same process as a
    publisher sees what is published at the moment it is opened. Several threads may query it at
    once. Close it, or use it in a `with` block.
    """

    def __init__(self, path: Path, spill: Path | None = None) -> None:
        """Open a file; with a folder `spill`, queries that need much memory use the disk there
        instead.

        Without it, the database's blocks stay in memory once they are read.
        """
        if not path.exists():
            raise WarehouseError(nothing_in(path))
        self._can_spill = spill is not None
        if spill is not None:
            self._base = connect(
                temp_directory=str(spill),
                memory_limit=memory_limit(path.stat().st_size, least_mb=500),
            )
        else:
            self._base = _idle_connection() or connect()
        self._connection = self._base.cursor()
        self._path = path
        self._is_open = True
        with explaining(f"{path}: cannot be opened"), reporting_damage(path):
            self._connection.execute(f"attach {quoted(path)} as published (read_only)")

    def table(
        self,
        query: str,
        parameters: Parameters = None,
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns and the rows of a query."""
        with self._cursor() as cursor:
            description = cursor.execute(query, parameters).description or []
            return [column[0] for column in description], cursor.fetchall()

    def rows(self, query: str, parameters: Parameters = None) -> list[Row]:
        """Return the rows of a query, as dictionaries."""
        columns, rows = self.table(query, parameters)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def query(self, path: str, parameters: Parameters = None) -> list[Row]:
        """Return the rows of a query, which is named by its path below `sql/`."""
        return self.rows(sql.read(path), parameters)

    def select(
        self,
        relation: str,
        columns: str = "*",
        *,
        order: str = "all",
        **where: Any,
    ) -> list[Row]:
        """Return the rows of one table or view whose columns have these values.

        A list allows each of its values; None finds NULL. Relation, columns and order become SQL
        unchanged: pass no text of users.
        """
        condition = "true"
        for name, value in where.items():
            if isinstance(value, list):
                condition += f" and {name} in (select unnest(${name}))"
            else:
                condition += f" and {name} is not distinct from ${name}"
        return self.rows(
            f"select {columns} from {relation} where {condition} order by {order}", where
        )

    def value(self, query: str, parameters: Parameters = None) -> Any:
        """Return the first value of a query's first row; None where there is no row."""
        _, rows = self.table(query, parameters)
        return rows[0][0] if rows else None

    def arrays(self, query: str, parameters: Parameters = None) -> dict[str, Any]:
        """Return the columns of a query as NumPy arrays, by name."""
        with self._cursor() as cursor:
            return dict(cursor.execute(query, parameters).fetchnumpy())

    def arrow(self, query: str, parameters: Parameters = None) -> Any:
        """Return the rows of a query as a PyArrow table."""
        with self._cursor() as cursor:
            return cursor.sql(query, params=parameters).to_arrow_table()

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection for one query, so that several threads can ask at once."""
        with reporting_damage(self._path), self._connection.cursor() as cursor:
            cursor.execute("use published")
            yield cursor

    def close(self) -> None:
        """Close the file."""
        if not self._is_open:
            return
        self._is_open = False
        self._connection.close()
        # A database with limits of its own is of no use to others.
        if not self._can_spill and len(_IDLE) < 2:
            with contextlib.suppress(duckdb.Error):
                self._base.execute("detach published")
                _IDLE.append(self._base)
                return
        self._base.close()

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Turn DuckDB's errors on a damaged file into one line that says what to do."""
    try:
        yield
    except duckdb.Error as error:
        # An error in a query does not mean damage.
        if isinstance(error, _QUERY_ERRORS) or is_database_whole(path):
            raise
        advice = "`prbench aggregate` rebuilds it from the stored parts, without a model call"
        raise WarehouseError(f"{path}: is damaged; {advice}") from error


def _idle_connection() -> duckdb.DuckDBPyConnection | None:
    with contextlib.suppress(IndexError):
        return _IDLE.pop()
    return None


@atexit.register
def _close_idle() -> None:
    # DuckDB's binding prints pages about databases that are open at exit.
    while _IDLE:
        _IDLE.pop().close()


def parts_of(reader: Reader) -> PartNames:
    """Return the parts that a database contains, as recorded in it."""
    return {(row["table_name"], row["part"]) for row in reader.rows(f"from {PARTS}")}


def published_parts(database: Path) -> PartNames | None:
    """Return the parts of a database; None if it is missing or must be rebuilt from the parts."""
    with contextlib.suppress(WarehouseError, duckdb.Error), Reader(database) as reader:
        if stamp_of(reader) == stamp():
            return parts_of(reader)
    return None


def is_damaged(database: Path) -> bool:
    """Return whether a published database is damaged; one from another version of the code counts
    as undamaged.
    """
    if not database.exists() or is_database_whole(database):
        return False
    # Its digest is wrong or missing; early versions wrote none.
    with contextlib.suppress(WarehouseError, duckdb.Error), Reader(database) as reader:
        return stamp_of(reader) == stamp()
    return True


def stamp() -> str:
    """Return a hash that changes with the contracts, the models and DuckDB (whose hash function
    makes keys).
    """
    tables = sorted(TABLES.values(), key=lambda table: table.name)
    macros = [sql.read(f"warehouse/{name}") for name in ("macros", "counts_as_judge")]
    # The first text stands for the form of the file.
    texts = ["ends with its digest", duckdb.__version__, *macros]
    texts += [table.definition for table in tables]
    texts += map(repr, sql.models())
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def stamp_of(reader: Reader) -> str | None:
    """Return the stamp that a database was published with; None if it has none."""
    with contextlib.suppress(duckdb.CatalogException):
        return str(reader.value(f"select stamp from {STAMP}"))
    return None
