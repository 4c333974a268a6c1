"""Declarations of figures and of their pages: columns and charts, with values as text for people.

Titles and kinds of columns are those of `sql/schema.yml`; texts have placeholders with values of
the benchmark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Literal, get_args

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.records import ScoreDefinition
from tasks.rules.text.numbers import SMALL_MARK, coverage_text, number

Row = Mapping[str, Any]
Rows = Sequence[Row]
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
    "time",
    "yes",
    "task",
    "few",
]
"""The format of a column's values: a score with three decimals, a share in percent, a coverage
rounded down, `yes` for true.

`usd` is a sum, `price` the cost of one item, with more decimals. `task` is a task's id with a link
to its page, or to the row's `address` if there is one. `few` is not shown as a column: if it is
true, the value in the column before it is marked as based on few tasks.
"""
MISSING = "–"
_DECIMALS = {
    "score": 3,
    "signed": 3,
    "number": 2,
    "p": 4,
    "usd": 2,
    "price": 4,
    "count": 0,
    "share": 1,
    "coverage": 1,
}


@dataclass(frozen=True)
class Column:
    """A column of a figure's table: its name in the rows, its heading, its format, and its group's
    heading.

    `few` names the column that is true where the value is based on few tasks.
    """

    name: str
    title: str
    kind: Kind = "text"
    group: str = ""
    few: str = ""


_INTERVAL: tuple[Kind, str] = ("signed", "95 % interval")


def columns(names: str, **headings: str | tuple[Kind, str]) -> tuple[Column, ...]:
    """Return columns by their names.

    Args:
        names: names in the rows, separated by spaces; after `Heading: `, to the next semicolon,
            they have this common heading instead of the usual one. `kappa±` means `kappa` and the
            two ends of its interval, `kappa_ci_low` and `kappa_ci_high`, under one heading; `ci~`
            means the two ends of an interval alone, `ci_low` and `ci_high`.
        headings: name -> a heading that differs from the usual one, or a format and a heading.

    Raises:
        LookupError: a column has no usual heading.
    """
    parsed: list[Column] = []
    for part in names.split("; "):
        group, _, of_group = part.rpartition(": ")
        for name in of_group.split():
            stem = name.rstrip("±~")
            given = headings.get(stem)
            if isinstance(given, tuple):
                kind, heading = given
            elif stem not in _usual() and name[-1] != "~":
                raise LookupError(f"no title of the column {stem!r} in sql/schema.yml")
            else:
                kind, own = _INTERVAL if name[-1] == "~" else _usual()[stem]
                heading = given or own
            if kind == "few":
                last = max(
                    i for i, each in enumerate(parsed) if not each.name.endswith(("_low", "_high"))
                )
                parsed[last] = replace(parsed[last], few=name)
                continue
            parsed += _columns_of(name, kind, heading, group)
    return tuple(parsed)


def _columns_of(name: str, kind: Kind, heading: str, group: str) -> Iterator[Column]:
    """Yield the columns that a name stands for in `columns`."""
    stem = name.rstrip("±~")
    (above, _, title) = heading.rpartition(": ")
    if name == stem:
        yield Column(name, title, kind, group or above)
        return
    if name[-1] == "±":
        yield Column(stem, title if above else "Value", kind, above or title)
        stem = f"{stem}_ci"
    yield Column(f"{stem}_low", "from", kind, above or title)
    yield Column(f"{stem}_high", "to", kind, above or title)


@cache
def _usual() -> dict[str, tuple[Kind, str]]:
    """Return the kind and the heading of each column; a colon follows the heading of a group."""
    by_kind: Mapping[Kind, Mapping[str, str]] = sql.schema()["titles"]
    return {
        name: (kind, heading)
        for kind, headings in by_kind.items()
        for name, heading in headings.items()
    }


def usual(name: str) -> tuple[Kind, str]:
    """Return the kind and the usual heading of a column; an empty heading if it has none."""
    return _usual().get(name, ("text", ""))


def short_title(name: str) -> str:
    """Return the heading of a column where width matters; empty if it is the usual one."""
    titles: Mapping[str, str] = sql.schema()["short_titles"]
    return titles.get(name, "")


def with_values(shown: Sequence[Column], rows: Rows) -> list[Column]:
    """Return the columns that have a value in any row; all columns if there is none."""
    return [
        column for column in shown if any(row.get(column.name) is not None for row in rows)
    ] or [*shown]


def small_notes(shown: Sequence[Column], rows: Rows) -> list[str]:
    """Return a note that explains the mark for few tasks, if any value of these rows has this
    mark.
    """
    from tasks.rules.statistics.intervals import FEW_OTHERS, SMALL

    marked = [column for column in shown if column.few]
    if not any(
        row.get(column.few) and row.get(column.name) is not None
        for column in marked
        for row in rows
    ):
        return []
    return [
        f"{SMALL_MARK} Few tasks: fewer than {SMALL}, or fewer than {FEW_OTHERS} that differ; the"
        " interval may be too narrow."
    ]


def is_number(column: Column, rows: Rows) -> bool:
    """Return whether all values of a column are numbers."""
    values = [row.get(column.name) for row in rows if row.get(column.name) is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def cell(column: Column, row: Row) -> str:
    """Return a value as text for people, on pages and in terminals."""
    value = row.get(column.name)
    if value is None or (column.kind == "yes" and not value):
        return MISSING
    if column.kind == "yes":
        return "yes"
    # A value that was computed in Python may already be a text.
    is_figure = column.kind in _DECIMALS and not isinstance(value, str)
    mark = SMALL_MARK if column.few and row.get(column.few) else ""
    return (_figure(column.kind, value) if is_figure else _text(value)) + mark


def _figure(kind: str, value: float) -> str:
    """Return a number with digits in groups of three."""
    if kind == "coverage":
        return coverage_text(value)
    digits = number(100 * value if kind == "share" else value, f"z,.{_DECIMALS[kind]}f")
    if kind == "share":
        return f"{digits}%"
    if kind in {"usd", "price"}:
        return f"−${digits[1:]}" if digits.startswith("−") else f"${digits}"
    return f"+{digits}" if kind == "signed" and value > 0 and digits.strip("0.") else digits


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Chart:
    """A chart: its heading among the figure's charts, the function that draws it, its rows, and its
    options.

    `kind` is the name of the function in `tasks/report/assets/kinds.js`.
    """

    title: str
    kind: str
    rows: Rows
    how: Mapping[str, Any]

    @property
    def declared(self) -> dict[str, Any]:
        """The chart for a page, with the columns of its rows that it shows or by which models and
        judges are chosen.
        """
        named = {"model", "judge_config", "ci_low", "ci_high"}
        for option in self.how.values():
            named.update(
                [option]
                if isinstance(option, str)
                else option
                if isinstance(option, Mapping)
                else ()
            )
        named |= {f"{name}_{end}" for name in named for end in ("low", "high", "ci_low", "ci_high")}
        rows = [{name: value for name, value in row.items() if name in named} for row in self.rows]
        return {
            **self.how,
            "kind": self.kind,
            "rows": rows,
        }

    @property
    def has_marks(self) -> bool:
        """True if a dot is hollow, or a cell has an asterisk."""
        columns = [self.how[option] for option in ("hollow", "marked") if self.how.get(option)]
        return any(row.get(column) for column in columns for row in self.rows)

    @property
    def is_blank(self) -> bool:
        """True if an axis has no value, so that the chart is not drawn."""
        shown = [self.how[axis] for axis in ("value", "x", "y") if axis in self.how]
        return any(all(row[column] is None for row in self.rows) for column in shown)


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


@dataclass(frozen=True)
class Figure:
    """A figure: a query gives the rows, `charts` draws them, `shows` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: its heading.
        says: an explanation in a sentence or two; `$score` and similar placeholders are replaced by
            the names of a benchmark's scores (`words`), and a reference to its paper is added
            (`Benchmark.figure_sources`).
        shows: the columns of the table of numbers, by name (`columns`), or the columns themselves.
        charts: declarations of its charts; none for a figure that is a table only.
        headings: headings of columns that differ from the usual ones.
        essential: the columns that a terminal of any width and a pipe show, by name, at most eight;
            the others join in the order of `shows` where the terminal is wide enough. A value or a
            lower end brings its interval.
        boards: columns whose values are the headings of groups of rows in a terminal and a pipe, as
            far as `shows` has them.
        empty: the text if there are no rows; a figure without one is left out then.
        query: the path below `sql/figures/` of the query for the rows; several figures may share
            a query.
        mart: the mart whose columns it shows, if it is one; it explains columns in files.
        compute: computes rows that SQL cannot, from the scope and the figure's parameters.
        given: the figure's own parameters; others are shared by all queries.
        listed: selects the rows of the table, which is for reading: by default those on full
            splits; the CSV has all.
        heading: a line above the table in a terminal that says what the current rows are about.
        notes: sentences about the current rows, below the charts.
        mark_note: what a hollow dot or an asterisk in a chart means; a note below charts that have
            one.
        measured: values that `prbench aggregate` computes; a note says so if a row lacks them all.
        breakdown: the kind of label that it is about; the figure is left out if the data has no
            such label.
        reach: what it covers: `tasks`, the tasks of the report; `pooled`, all tasks, so a report of
            some splits leaves it out; `warehouse`, the whole warehouse whatever the splits (runs,
            checks, control sets), which a report of some splits states.
    """

    name: str
    title: str
    says: str
    shows: str | tuple[Column, ...]
    charts: Charts | Sequence[Charts] = ()
    headings: Mapping[str, str | tuple[Kind, str]] = field(default_factory=dict)
    essential: str = ""
    boards: str = "judge_config split"
    empty: str = ""
    query: str = ""
    mart: str = ""
    compute: Callable[[Any, Mapping[str, Any]], list[dict[str, Any]]] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    listed: Callable[[Rows], Rows] = on_full_splits
    heading: Callable[[Rows], str] | None = None
    notes: Callable[[Rows], Sequence[str]] | None = None
    mark_note: str = ""
    measured: tuple[str, ...] = ()
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
        return columns(self.shows, **self.headings) if isinstance(self.shows, str) else self.shows

    def drawn(self, rows: Rows) -> list[Chart]:
        """Return the charts of these rows."""
        declared = (self.charts,) if callable(self.charts) else self.charts
        return [chart for charts in declared for chart in charts(rows)]

    def notes_on(self, rows: Rows, shown: Rows | None = None) -> list[str]:
        """Return sentences about these rows; `shown` are those in the table, if not all."""
        is_missing = self.measured and any(
            all(row[name] is None for name in self.measured) for row in rows
        )
        missing = (
            ["Some figures are missing; `prbench aggregate` computes them."] if is_missing else []
        )
        return [
            *(self.notes(rows) if self.notes and rows else ()),
            *missing,
            *small_notes(self.columns, rows if shown is None else shown),
        ]

    def of_job(self, job: Job, **given: Any) -> list[dict[str, Any]]:
        """Return the rows of a figure that is computed from the job alone, without published
        data.
        """
        assert self.compute is not None
        return self.compute(SimpleNamespace(job=job), {**self.given, **given})


def pooled(*figures: Figure) -> tuple[Figure, ...]:
    """Return figures that pool all tasks, so that a report of some splits leaves them out."""
    return tuple(replace(figure, reach="pooled") for figure in figures)


@dataclass(frozen=True)
class Breakdown:
    """A kind of label in the data: its name, its title, and whether criteria or tasks have it."""

    kind: str
    title: str
    of_criteria: bool = False


Group = Literal["Results", "Tasks and verdicts", "Judges", "Data"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""The groups of pages in the navigation, in their order."""


@dataclass(frozen=True)
class Page:
    """A page: its file's name, its title, one sentence about its subject, and its figures.

    `n_chosen` is the number of models that the charts show at first, on pages where all models
    would be too many to tell apart. `template` is for a page with more content than its figures;
    `has_judge` is false for a page without a choice of judges. `needs` is a table: the page is left
    out if the benchmark has no rows in it. `own` makes a figure for each kind of label that only
    this benchmark has; these figures come last. `group` is its group in the navigation.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    n_chosen: int | None = None
    template: str = "figures.html"
    has_judge: bool = True
    needs: str = ""
    own: Callable[[Breakdown], Figure] | None = None
    group: Group = "Results"


def score_word(score_name: str) -> str:
    """Return a score's name for use in a sentence or on an axis."""
    name = score_name.replace("_", " ")
    return name if name.endswith("score") else f"{name} score"


def formula(score: ScoreDefinition) -> str:
    """Return a response's score as a fraction of `points` and the sums of `positive` and `negative`
    weights.
    """
    above = _sum((1.0, "points"), (score.numerator_negative, "negative"))
    below = _sum((score.denominator_positive, "positive"), (score.denominator_negative, "negative"))
    return f"{above} / {below}"


def _sum(*terms: tuple[float, str]) -> str:
    """Return the sum of the terms whose factor is not 0, in parentheses if there are several."""
    parts = [
        f"{'−' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor):g} × '}{name}"
        for factor, name in terms
        if factor
    ]
    text = " ".join(parts).removeprefix("+ ")
    return f"({text})" if len(parts) > 1 else text


def words(benchmark: Benchmark) -> dict[str, str]:
    """Return a benchmark's values for the placeholders in texts of figures."""
    primary = benchmark.primary_score
    of_criteria = benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(of_criteria.score_name),
        "criteria_formula": formula(of_criteria),
    }
