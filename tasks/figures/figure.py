"""Declarations of figures and of their pages; values of the placeholders in their texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.figures.charts import Chart, Charts, on_full_splits
from tasks.figures.columns import Column, Rows, small_notes
from tasks.rules.records import ScoreDefinition


@dataclass(frozen=True)
class Figure:
    """A figure: a query gives the rows, `charts` draws them, `columns` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: its heading.
        says: an explanation in a sentence or two; `$score` and similar placeholders are replaced by the names of a
            benchmark's scores (`words`), and a reference to its paper is added (`Benchmark.figure_sources`).
        columns: the table of numbers.
        charts: declarations of its charts; none for a figure that is a table only.
        empty: the text if there are no rows; a figure without one is left out then.
        query: the name of the query for the rows (in `sql/figures/`), if it is not the name of the figure; several
            figures may share a query.
        relation: the mart or view that gives the rows, with all its columns, if there is no query.
        order: the order of the rows, in SQL.
        compute: computes rows that SQL cannot, from the scope and the figure's parameters.
        given: the figure's own parameters; others are shared by all queries.
        listed: selects the rows of the table, which is for reading: by default those on full splits; the CSV has all.
        notes: sentences about the current rows, below the charts.
        measured: values that `prbench aggregate` computes; a note says so if a row lacks them all.
        breakdown: the kind of label that it is about; the figure is left out if the data has no such label.
        reach: what it covers: `tasks`, the tasks of the report; `pooled`, all tasks, so a report of some splits leaves
            it out; `warehouse`, the whole warehouse whatever the splits (runs, checks, control sets), which a report of
            some splits states.
    """

    name: str
    title: str
    says: str
    columns: tuple[Column, ...]
    charts: Charts | Sequence[Charts] = ()
    empty: str = ""
    query: str = ""
    relation: str = ""
    order: str = ""
    compute: Callable[[Any, Mapping[str, Any]], list[dict[str, Any]]] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    listed: Callable[[Rows], Rows] = on_full_splits
    notes: Callable[[Rows], Sequence[str]] | None = None
    measured: tuple[str, ...] = ()
    breakdown: str = ""
    reach: Literal["tasks", "pooled", "warehouse"] = "tasks"

    def drawn(self, rows: Rows) -> list[Chart]:
        """Return the charts of these rows."""
        declared = (self.charts,) if callable(self.charts) else self.charts
        return [chart for charts in declared for chart in charts(rows)]

    def notes_on(self, rows: Rows) -> list[str]:
        """Return sentences about these rows."""
        is_missing = self.measured and any(all(row[name] is None for name in self.measured) for row in rows)
        missing = ["Some figures are missing; `prbench aggregate` computes them."] if is_missing else []
        return [*(self.notes(rows) if self.notes and rows else ()), *missing, *small_notes(self.columns, rows)]

    def of_job(self, job: Job, **given: Any) -> list[dict[str, Any]]:
        """Return the rows of a figure that is computed from the job alone, without published data."""
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


@dataclass(frozen=True)
class Page:
    """A page: its file's name, its title, one sentence about its subject, and its figures.

    `n_chosen` is the number of models that the charts show at first, on pages where all models would be too many to
    tell apart. `template` is for a page with more content than its figures; `has_judge` is false for a page without a
    choice of judges. `needs` is a table: the page is left out if the benchmark has no rows in it. `own` makes a figure
    for each kind of label that only this benchmark has; these figures come last.
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


def score_word(score_name: str) -> str:
    """Return a score's name for use in a sentence or on an axis."""
    name = score_name.replace("_", " ")
    return name if name.endswith("score") else f"{name} score"


def formula(score: ScoreDefinition) -> str:
    """Return a response's score as a fraction of `points` and the sums of `positive` and `negative` weights."""
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
    primary, of_criteria = benchmark.primary_score, benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(of_criteria.score_name),
        "criteria_formula": formula(of_criteria),
    }
