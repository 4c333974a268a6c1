"""Figures, each with the source of its rows, its columns and its charts; pages of figures; and words in sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.figures.charts import Plot
from tasks.figures.columns import Column, Rows, small_notes
from tasks.rules.records import ScoreDefinition

Reach = Literal["tasks", "pooled", "warehouse"]
"""What a figure is of: the tasks of the report; pooled over all tasks, so that a report of some splits leaves it out;
or the whole warehouse, whatever the splits (runs, checks, judges on their control sets), which it says then."""


@dataclass(frozen=True)
class Figure:
    """A figure: a query gives the rows, `plots` draws them, `columns` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: what is shown.
        says: how it is to be read, in a sentence or two; `$score` and the like stand for what a benchmark's scores are
            called (`words`), and where its paper shows the same is added (`Benchmark.figure_sources`).
        columns: the table of numbers.
        plots: the charts; none for a figure that is a table only.
        empty: what is said where there are no rows.
        is_table: whether the table is what is looked at first, and not folded away below the charts.
        query: the query below `sql/figures/` that gives the rows, where it has another name than the figure; it may
            serve several.
        relation: the mart or view whose rows in the scope these are, with all their columns, where there is no query.
        order: their order, in SQL.
        compute: gives the rows where SQL cannot, from the scope and what the figure asks for.
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
    query: str = ""
    relation: str = ""
    order: str = ""
    compute: Callable[[Any, Mapping[str, Any]], list[dict[str, Any]]] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    listed: Callable[[Rows], Rows] | None = None
    notes: Callable[[Rows], Sequence[str]] | None = None
    breakdown: str = ""
    is_optional: bool = False
    reach: Reach = "tasks"

    def notes_on(self, rows: Rows) -> list[str]:
        """Return sentences about these rows."""
        return [*(self.notes(rows) if self.notes and rows else ()), *small_notes(self.columns, rows)]

    def of_job(self, job: Job, **given: Any) -> list[dict[str, Any]]:
        """Return the rows of a figure that needs only the job from its scope, whatever is published."""
        assert self.compute is not None
        return self.compute(SimpleNamespace(job=job), {**self.given, **given})


def not_computed(*names: str) -> Callable[[Rows], list[str]]:
    """Return a function that notes rows without a value in some columns, which an aggregation fills."""
    missing = "Some figures are missing; `prbench aggregate` computes them."
    return lambda rows: [missing] if any(all(row[name] is None for name in names) for row in rows) else []


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
    `template` is for a page that has more to say than its figures; `has_judge` is false for one on which a judge is
    not to be chosen. `needs` is the table without whose rows on the benchmark the page is left out. `own` makes a
    figure for each kind of label that the benchmark alone has, which stand last.
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
    """Return the terms that are not 0, each with its sign, several of them in parentheses."""
    shown = [(factor, name) for factor, name in terms if factor]
    parts = [
        f"{'−' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor):g} × '}{name}"
        for factor, name in shown
    ]
    text = " ".join(parts).removeprefix("+ ")
    return f"({text})" if len(shown) > 1 else text


def words(benchmark: Benchmark) -> dict[str, str]:
    """Return the words of a benchmark for the sentences below figures, by the names that stand for them there."""
    primary, of_criteria = benchmark.primary_score, benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(of_criteria.score_name),
        "criteria_formula": formula(of_criteria),
        "explained": _explained(benchmark),
    }


def _explained(benchmark: Benchmark) -> str:
    """Return the meaning of the words in the primary score's formula."""
    half = " (half the weight of those partly met)" if "ternary" in benchmark.gradings else ""
    sums = "positive is the sum of all weights above 0"
    if "negative" in formula(benchmark.primary_score):
        sums += " and negative the sum of all weights below 0"
    clipped = " A mean below 0 counts as 0." if benchmark.primary_score.clips_mean else ""
    return f"points is the sum of the weights of the criteria that are met{half}; {sums}.{clipped}"
