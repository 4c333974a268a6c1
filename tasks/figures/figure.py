"""A figure: its declaration, its columns, and their values as text for people.

Headings and kinds of columns are usually those of `sql/schema.yml` (`titles`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import sql
from tasks.config.job import Job
from tasks.console.tables import TableColumn, one_line_text
from tasks.rules.statistics.intervals import FEW_DIFFERING, SMALL
from tasks.rules.text.numbers import SMALL_MARK, coverage_text, number

Row = Mapping[str, Any]
Rows = Sequence[Row]
Parameters = Mapping[str, Any]
"""What a figure's query or computation is given: name -> value."""
NO_PARAMETERS: Parameters = {}
Kind = Literal[
    "text",
    "count",
    "number",
    "score",
    "signed",
    "share",
    "coverage",
    "usd",
    "price",
    "p",
    "variance",
    "time",
    "yes",
    "task",
    "few",
]
"""The format of a column's values: a score with three decimals, a share in percent, a coverage
rounded down, `yes` for true.

`usd` is a sum, `price` the cost of one item, with more decimals. `task` is a task's id with a link
to its page, or to the row's `address` if there is one. `few` is not shown as a column: it marks
the value of another one as based on few tasks (`Column.few`).
"""
MISSING = "–"
_DECIMALS = {
    "score": 3,
    "signed": 3,
    "number": 2,
    "p": 4,
    "variance": 5,
    "usd": 2,
    "price": 4,
    "count": 0,
    "share": 1,
    "coverage": 1,
}


@dataclass(frozen=True)
class Column:
    """A column of a figure's table.

    Attributes:
        name: its name in the rows.
        title: its heading; empty for the usual one.
        kind: the format of its values; None for the usual one.
        group: a heading above its own, which its neighbours may share.
        few: the column that is true where the value is based on few tasks.
        interval: true if the ends of its interval, `<name>_ci_low` and `<name>_ci_high`, follow
            under a common heading.
        end: `low` or `high` for an end of an interval; empty for any other column.
    """

    name: str
    title: str = ""
    kind: Kind | None = None
    group: str = ""
    few: str = ""
    interval: bool = False
    end: Literal["", "low", "high"] = ""

    def parts(self) -> list["Column"]:
        """Return the column with its usual heading and kind, and the ends of its interval.

        Raises:
            LookupError: it has no usual heading.
        """
        usual_kind, heading = usual(self.name)
        kind = self.kind or usual_kind
        title = self.title
        group = self.group
        if not title:
            if not heading:
                raise LookupError(f"no title of the column {self.name!r} in sql/schema.yml")
            usual_group, _, title = heading.rpartition(": ")
            group = group or usual_group
        if not self.interval:
            return [replace(self, kind=kind, title=title, group=group)]
        if not group:
            group = title
            title = "Value"
        column = replace(self, kind=kind, title=title, group=group)
        return [column, *Interval(f"{self.name}_ci", kind, group).parts()]


@dataclass(frozen=True)
class Interval:
    """Two columns, `<name>_low` and `<name>_high`, that are the ends of an interval.

    Attributes:
        name: the beginning of both names.
        kind: the format of the values; None for the usual one.
        group: the heading of both; empty for the usual one.
    """

    name: str
    kind: Kind | None = None
    group: str = ""

    def parts(self) -> list[Column]:
        """Return the columns of both ends."""
        usual_group = usual(f"{self.name}_low").heading.rpartition(": ")[0]
        group = self.group or usual_group or "95 % interval"
        low = Column(f"{self.name}_low", "from", self.kind, group, end="low")
        high = Column(f"{self.name}_high", "to", self.kind, group, end="high")
        return [*low.parts(), *high.parts()]


@dataclass(frozen=True)
class ColumnGroup:
    """Columns under a common heading."""

    title: str
    members: Sequence["Declared"]

    def parts(self) -> list[Column]:
        """Return the columns with this heading."""
        return [replace(column, group=self.title) for column in table_columns(*self.members)]


Declared = str | Column | Interval | ColumnGroup
"""Columns as figures declare them; a text is the name of a column with its usual heading and
kind.
"""


def table_columns(*declarations: Declared) -> tuple[Column, ...]:
    """Return the columns of a table.

    Raises:
        LookupError: a column has no usual heading.
    """
    columns: list[Column] = []
    for declaration in declarations:
        if isinstance(declaration, str):
            columns += Column(declaration).parts()
        else:
            columns += declaration.parts()
    return tuple(columns)


class UsualColumn(NamedTuple):
    """The usual kind and heading of a column; the heading is empty if it has none.

    The heading of a column in a group is "group: heading".
    """

    kind: Kind
    heading: str


@cache
def usual(name: str) -> UsualColumn:
    """Return the usual kind and heading of a column."""
    headings_by_kind: Mapping[Kind, Mapping[str, str]] = sql.schema()["titles"]
    for kind, headings in headings_by_kind.items():
        if name in headings:
            return UsualColumn(kind, headings[name])
    return UsualColumn("text", "")


def with_values(columns: Sequence[Column], rows: Rows) -> list[Column]:
    """Return the columns that have a value in any row; all columns if there is none."""
    filled_columns = [column for column in columns if _has_value(column, rows)]
    return filled_columns or [*columns]


def _has_value(column: Column, rows: Rows) -> bool:
    return any(row.get(column.name) is not None for row in rows)


def is_number(column: Column, rows: Rows) -> bool:
    """Return whether all values of a column are numbers or missing."""
    values = (row.get(column.name) for row in rows)
    return all(
        isinstance(value, int | float | None) and not isinstance(value, bool) for value in values
    )


def cell(column: Column, row: Row) -> str:
    """Return a value as text for people, on pages and in terminals."""
    value = row.get(column.name)
    if value is None:
        return MISSING
    if column.kind == "yes":
        return "yes" if value else MISSING
    # A value that was computed in Python may already be a text.
    if column.kind in _DECIMALS and not isinstance(value, str):
        text = _number_text(column.kind, value)
    else:
        text = _text(value)
    is_marked = column.few and row.get(column.few)
    return text + SMALL_MARK if is_marked else text


def _number_text(kind: str, value: float) -> str:
    """Return a number with digits in groups of three."""
    if kind == "coverage":
        return coverage_text(value)
    if kind == "share":
        value = 100 * value
    digits = number(value, f"z,.{_DECIMALS[kind]}f")
    if kind == "share":
        return f"{digits}%"
    if kind in {"usd", "price"}:
        return f"−${digits[1:]}" if digits.startswith("−") else f"${digits}"
    is_zero = not digits.strip("0.")
    return f"+{digits}" if kind == "signed" and value > 0 and not is_zero else digits


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def terminal_columns(
    columns: Sequence[Column],
    rows: Rows,
    essential: Collection[str] = (),
) -> list[TableColumn]:
    """Return the columns of a figure for a terminal, whose cells look as on a page.

    The two ends of an interval share a cell, together with the value before them if it has the same
    group heading.
    """
    table: list[TableColumn] = []
    for parts in _sharing_cells(columns):
        column = TableColumn(
            name=parts[0].name,
            heading=_terminal_heading(parts),
            cells=[_terminal_cell(parts, row) for row in rows],
            is_number=all(is_number(part, rows) for part in parts),
            is_essential=not essential or parts[0].name in essential,
            short=sql.schema()["short_titles"].get(parts[0].name, ""),
        )
        table.append(column)
    return table


def _sharing_cells(columns: Sequence[Column]) -> list[list[Column]]:
    """Return the columns in groups whose values share a cell."""
    cells: list[list[Column]] = []
    for column in columns:
        if cells and _continues(cells[-1], column):
            cells[-1].append(column)
        else:
            cells.append([column])
    return cells


def _continues(parts: Sequence[Column], column: Column) -> bool:
    """Return whether a column shares a cell with the columns before it, `parts`."""
    if column.end == "low":
        is_value = len(parts) == 1 and not parts[0].end
        return is_value and bool(column.group) and parts[0].group == column.group
    return column.end == "high"


def _terminal_heading(parts: Sequence[Column]) -> str:
    group = parts[0].group
    title = parts[0].title
    if len(parts) == 1:
        return f"{group}: {title}" if group else title
    return group or f"{title} to {parts[1].title}"


def _terminal_cell(parts: Sequence[Column], row: Row) -> str:
    cells = [one_line_text(cell(column, row)) for column in parts]
    if len(cells) == 1:
        return cells[0]
    low = cells[-2]
    high = cells[-1]
    interval = high if low in {MISSING, high} else f"{low} to {high}"
    if len(cells) == 2:
        return interval
    value = cells[0]
    return value if interval == MISSING else f"{value} ({interval})"


@dataclass(frozen=True)
class Chart:
    """A chart: its heading among the figure's charts, the function that draws it, its rows, and its
    options.

    `kind` is the name of the function in `tasks/report/assets/kinds.js`.
    """

    title: str
    kind: str
    rows: Rows
    options: Mapping[str, Any]

    @property
    def declared(self) -> dict[str, Any]:
        """The chart for a page, with the columns of its rows that it shows or by which models and
        judges are chosen.
        """
        names = {"model", "judge_config", "ci_low", "ci_high"}
        # An option names one column or several; other texts in options are no names of columns.
        for option in self.options.values():
            if isinstance(option, str):
                names.add(option)
            elif isinstance(option, Mapping | list):
                names.update(option)
        for name in tuple(names):
            names.update(f"{name}_{end}" for end in ("low", "high", "ci_low", "ci_high"))
        rows = []
        for row in self.rows:
            rows.append({name: value for name, value in row.items() if name in names})
        return {**self.options, "kind": self.kind, "rows": rows}

    @property
    def has_marks(self) -> bool:
        """True if a dot is hollow, or a cell has an asterisk."""
        for option in ("hollow", "marked"):
            column = self.options.get(option)
            if column and any(row.get(column) for row in self.rows):
                return True
        return False

    @property
    def is_blank(self) -> bool:
        """True if an axis has no value, so that the chart is not drawn."""
        for axis in ("value", "x", "y"):
            column = self.options.get(axis)
            if column and all(row[column] is None for row in self.rows):
                return True
        return False


Charts = Callable[[Rows], list[Chart]]
"""A declaration: a function from the rows of a figure to its charts."""


def on_full_splits(rows: Rows) -> Rows:
    """Return the rows on full splits, of which hard splits are a part; all rows if there are only
    hard splits.
    """
    return [row for row in rows if not row.get("is_hard")] or rows


def grouped(rows: Iterable[Row], *names: str) -> dict[Any, list[Row]]:
    """Return the rows with each value of a column, or with each of the values of several, in their
    order.
    """
    groups: dict[Any, list[Row]] = {}
    key = itemgetter(*names)
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


MEAN_SCORE = (
    Column("mean_score", few="is_small"),
    Interval("ci"),
    "hidden_mean_score",
    Interval("hidden_ci"),
)
"""The columns of a mean score: as shown, and before clipping."""
BY_LABEL = ("judge_config", "split", "label")
"""The boards of a figure that has several labels of tasks or criteria."""
WHOLE_OR_CATEGORIES = {"breakdown": ["all", "category"]}
"""The choices of a figure of whole rubrics or of their categories."""


@dataclass(frozen=True)
class Figure:
    """A figure: a query gives the rows, `charts` draws them, `shows` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: its heading.
        says: an explanation in a sentence or two; `$score` and similar placeholders are replaced by
            the names of a benchmark's scores (`placeholder_values`), and a reference to its paper
            is added (`Benchmark.figure_sources`).
        shows: the columns of the table of numbers.
        charts: declarations of its charts; none for a figure that is a table only.
        essential: the columns that a pipe and a terminal of 80 characters show, at most eight, all
            if it is empty; the others join in the order of `shows` where a terminal is wider. A
            value or a lower end brings its interval.
        boards: columns whose values are the headings of groups of rows in a terminal and a pipe, as
            far as `shows` has them; empty for a single group.
        empty: the text if there are no rows; a figure without one is left out then.
        query: the path below `sql/figures/` of the query for the rows; several figures may share
            a query.
        mart: the mart whose columns it shows, if it is one; it explains columns in files.
        compute: computes rows that SQL cannot, from the scope and the figure's parameters.
        parameters: the figure's own parameters; others are shared by all queries.
        choices: parameter -> the values that it may have, if they are few.
        required: the parameters without which it shows nothing.
        listed: selects the rows of the table, which is for reading: by default those on full
            splits; the CSV has all.
        heading: a line above the table in a terminal that says what the current rows are about.
        notes: sentences about the current rows, below the charts.
        mark_note: what a hollow dot or an asterisk in a chart means; a note below charts that have
            one.
        measured: a column that `prbench aggregate` computes for every row, such as `is_small` (not
            an interval, which may be missing for a reason); a note says so if a row lacks it.
        breakdown: the kind of label that it is about; the figure is left out if the data has no
            such label.
        reach: what it covers: `tasks`, the tasks of the report; `pooled`, all tasks, so a report of
            some splits leaves it out; `warehouse`, more than tasks (runs, checks, control sets),
            whatever the splits, which a report of some splits states.
    """

    name: str
    title: str
    says: str
    shows: tuple[Declared, ...]
    charts: Charts | Sequence[Charts] = ()
    essential: Sequence[str] = ()
    boards: Sequence[str] = ("judge_config", "split")
    empty: str = ""
    query: str = ""
    mart: str = ""
    compute: Callable[[Any, Parameters], list[dict[str, Any]]] | None = None
    parameters: Parameters = field(default_factory=dict)
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    required: Sequence[str] = ()
    listed: Callable[[Rows], Rows] = on_full_splits
    heading: Callable[[Rows], str] | None = None
    notes: Callable[[Rows], Sequence[str]] | None = None
    mark_note: str = ""
    measured: str = ""
    breakdown: str = ""
    reach: Literal["tasks", "pooled", "warehouse"] = "tasks"

    @property
    def source(self) -> str:
        """What its rows come from, for people."""
        if self.compute is not None:
            return "Python"
        if self.mart:
            return self.mart
        is_own = self.query.rpartition("/")[2] == self.name
        return "its own query" if is_own else self.query

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table of numbers."""
        return table_columns(*self.shows)

    def drawn(self, rows: Rows) -> list[Chart]:
        """Return the charts of these rows."""
        if callable(self.charts):
            return self.charts(rows)
        drawn_charts: list[Chart] = []
        for charts in self.charts:
            drawn_charts += charts(rows)
        return drawn_charts

    def notes_on(self, rows: Rows) -> list[str]:
        """Return sentences about these rows."""
        notes: list[str] = []
        if self.notes and rows:
            notes += self.notes(rows)
        if self.measured and any(row[self.measured] is None for row in rows):
            notes.append("Some figures are missing; `prbench aggregate` computes them.")
        return notes

    def small_notes(self, table_rows: Rows) -> list[str]:
        """Return a note that explains the mark for few tasks, if a value in the table has it."""
        for column in self.columns:
            few = column.few
            if few and _has_value(column, [row for row in table_rows if row.get(few)]):
                return [
                    f"{SMALL_MARK} Few tasks: fewer than {SMALL}, or fewer than {FEW_DIFFERING}"
                    " that differ; the interval may be too narrow."
                ]
        return []

    @property
    def settable_parameters(self) -> Parameters:
        """The parameters that `name=value` sets; `is_hard` has the option `--hard`."""
        parameters = dict(self.parameters)
        parameters.pop("is_hard", None)
        return parameters

    def of_job(self, job: Job, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a figure whose `compute` reads only the job of its scope, so that no
        published data is needed.
        """
        assert self.compute is not None
        return self.compute(SimpleNamespace(job=job), {**self.parameters, **parameters})


def pooled(*figures: Figure) -> tuple[Figure, ...]:
    """Return figures that pool all tasks, so that a report of some splits leaves them out."""
    return tuple(replace(figure, reach="pooled") for figure in figures)
