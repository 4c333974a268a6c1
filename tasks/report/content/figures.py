"""What a page of the report is made of: figures, each with its SQL, its numbers and its charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt

from tasks.report.content.columns import Column

Row = Mapping[str, Any]
Rows = Sequence[Row]
Reach = Literal["tasks", "pooled", "warehouse"]
"""What a figure is of: the tasks of the report; pooled over all tasks, so that a report of some splits leaves it out;
or the whole warehouse, whatever the splits (runs, checks, judges on their control sets), which it says then."""


@dataclass(frozen=True)
class Plot:
    """One chart of a figure, with the heading that distinguishes it from the others beside it."""

    title: str
    chart: alt.TopLevelMixin


@dataclass(frozen=True)
class Figure:
    """A question with its answer: a query gives the rows, `plots` draws them, `columns` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: what is shown.
        says: how it is to be read, in a sentence or two; `$score` and the like stand for what a benchmark's scores are
            called (`wording.words`), and where its paper shows the same is added (`Benchmark.figure_sources`).
        columns: the table of numbers.
        plots: the charts; none for a figure that is a table only.
        empty: what is said where there are no rows.
        is_table: whether the table is what is looked at first, and not folded away below the charts.
        query: the query below `sql/report/` that gives the rows, as `<page>/<name>`; it may serve several figures.
        given: what the query asks for beside what all may ask for.
        listed: the rows that the table has, where all of them would be too many to read; the CSV has all.
        notes: sentences about these very rows, below the charts.
        breakdown: the kind of label that it is about; it is left out where the data has none of this kind.
        is_optional: whether it is left out where it has no rows.
        reach: what it is of, where that is not the report's tasks.
    """

    name: str
    title: str
    says: str
    columns: tuple[Column, ...]
    plots: Callable[[Rows], Sequence[Plot]] | None = None
    empty: str = "There is nothing to show here yet."
    is_table: bool = False
    query: str = field(kw_only=True)
    given: Mapping[str, Any] = field(default_factory=dict)
    listed: Callable[[Rows], Rows] | None = None
    notes: Callable[[Rows], Sequence[str]] | None = None
    breakdown: str = ""
    is_optional: bool = False
    reach: Reach = "tasks"


@dataclass(frozen=True)
class Breakdown:
    """A kind of label that the data has: its name and title, and whether criteria carry it, or else tasks."""

    kind: str
    title: str
    of_criteria: bool


@dataclass(frozen=True)
class Page:
    """A page: its file's name, its title, one sentence of what it is about, and its figures.

    `n_chosen` is how many models its charts show at first, where all of them at once could not be distinguished.
    `template` is for a page that has more to say than its figures; `has_judging` is false for one on which a judge is
    not to be chosen. `needs` is the table without whose rows on the benchmark the page is left out. `own` makes a
    figure for each kind of label that the benchmark alone has, which stand last.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    n_chosen: int | None = None
    template: str = "figures.html"
    has_judging: bool = True
    needs: str = ""
    own: Callable[[Breakdown], Figure] | None = None
