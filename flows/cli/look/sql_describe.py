"""The catalogue of the published database: its tables, views and columns, with what they mean."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import sql
from flows.cli.look.sql_query import run_sql
from tasks.rules.errors import UsageError
from warehouse import TABLES, quoted

_FIRST = ("leaderboard", "scores", "verdict_details", "tasks", "responses", "run_costs")
_MEASURES = ("_measures", "intervals", "condition_tests")
_LISTED = {"listed": sql.read("questions/look/tables_and_views")}


@dataclass(frozen=True)
class Described:
    """A table or view: its name, what one row is, and its columns with their meaning."""

    name: str
    meaning: str
    columns: dict[str, str] = field(default_factory=dict)


class Catalogue(dict[str, Described]):
    """Every table and view that users see by its name in small letters, the publisher's own ones too."""

    def __missing__(self, name: str) -> Described:
        """Found whatever its case, as in SQL.

        Raises:
            UsageError: there is no such table; the message names the nearest ones.
        """
        if name.lower() in self:
            return self[name.lower()]
        listed = [listed for listed, _ in listed_names() if listed in self]
        raise UsageError(f"there is no table or view {name}; {nearest(name, listed, also=self)}")


def read_catalogue(database: Path) -> Catalogue:
    """All tables and views that are published at this moment."""
    rows = run_sql(database, sql.with_steps(sql.read("questions/look/catalogue"), _LISTED)).rows
    found = Catalogue()
    for name, meaning, column, column_meaning in rows:
        found.setdefault(name.lower(), Described(name, meaning)).columns[column] = column_meaning
    return found


def listed_names() -> list[tuple[str, str]]:
    """Return what a list of tables shows in its order, and whether it is a `mart` or `stored`.

    What most people need comes first, and last the stored measures, which marts show beside what they belong to.
    """
    marts = sql.schema()["marts"]
    named = [(name, "mart") for name in sorted(marts)] + [(name, "stored") for name in sorted(TABLES)]
    first = {name: place for place, name in enumerate(_FIRST)}
    return sorted(named, key=lambda each: (first.get(each[0], len(first)), each[0].endswith(_MEASURES)))


def tables_query() -> str:
    """The query for the list of tables, in the order of `listed_names`."""
    origins = ", ".join(f"({quoted(name)}, {quoted(origin)}, {place})"
                        for place, (name, origin) in enumerate(listed_names()))  # fmt: skip
    steps = {**_LISTED, "origins": f"select * from (values {origins}) as given (name, origin, place)"}
    return sql.with_steps(sql.read("questions/look/tables"), steps)


def columns_query(name: str) -> str:
    """The query for the columns of a table."""
    return sql.with_steps(sql.read("questions/look/columns"), {"named_table": f"select {quoted(name)} as name"})


def nearest(name: str, listed: Iterable[str], *, also: Iterable[str] = ()) -> str:
    """A hint for an unknown name: the nearest of all names, else those of a list."""
    listed = list(listed)
    found = difflib.get_close_matches(name.lower(), list(dict.fromkeys([*listed, *also])))
    return f"did you mean {' or '.join(found)}?" if found else f"known: {', '.join(listed)}"
