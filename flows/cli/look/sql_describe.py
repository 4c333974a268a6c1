"""The catalogue of the published database: its tables, views and columns, with what they mean."""

import difflib
from collections.abc import Iterable
from pathlib import Path

import sql
from flows.cli.look.sql_query import run_sql
from tasks.rules.errors import UsageError
from warehouse import TABLES, quoted

_LISTED = {"listed": sql.read("questions/look/tables_and_views")}


def described(database: Path, name: str) -> tuple[str, str]:
    """The name of a published table or view, found whatever its case as in SQL, and what one row of it is.

    Raises:
        UsageError: there is no such table; the message names the nearest ones.
    """
    found = {row[0].lower(): row for row in run_sql(database, sql.read("questions/look/tables_and_views")).rows}
    if name.lower() not in found:
        listed = [listed for listed, _ in listed_names() if listed in found]
        raise UsageError(f"there is no table or view {name}; {nearest(name, listed, also=found)}")
    table, _, meaning = found[name.lower()]
    return table, meaning or ""


def listed_names() -> list[tuple[str, str]]:
    """What a list of tables shows, and whether it is a `mart` or `stored`."""
    marts = sql.schema()["marts"]
    return [(name, "mart") for name in sorted(marts)] + [(name, "stored") for name in sorted(TABLES)]


def tables_query() -> str:
    """The query for the list of tables: marts first, then what is stored."""
    origins = ", ".join(f"({quoted(name)}, {quoted(origin)})" for name, origin in listed_names())
    steps = {**_LISTED, "origins": f"select * from (values {origins}) as given (name, origin)"}
    return sql.with_steps(sql.read("questions/look/tables"), steps)


def columns_query(name: str) -> str:
    """The query for the columns of a table."""
    return sql.with_steps(sql.read("questions/look/columns"), {"named_table": f"select {quoted(name)} as name"})


def nearest(name: str, listed: Iterable[str], *, also: Iterable[str] = ()) -> str:
    """A hint for an unknown name: the nearest of all names, else those of a list."""
    listed = list(listed)
    found = difflib.get_close_matches(name.lower(), list(dict.fromkeys([*listed, *also])))
    return f"did you mean {' or '.join(found)}?" if found else f"known: {', '.join(listed)}"
