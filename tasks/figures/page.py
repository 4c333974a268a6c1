"""Pages of figures, and a benchmark's values for the placeholders in their texts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from tasks.benchmarks.base import Benchmark
from tasks.figures.figure import Figure
from tasks.rules.records import ScoreDefinition


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
    `has_judge` is false for a page without a choice of judges. Without rows of the benchmark
    in `required_table`, the page is left out. `own_figure` makes a figure for each kind of label
    that only this benchmark has; these figures come last. `group` is its group in the navigation.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    n_chosen: int | None = None
    template: str = "figures.html"
    has_judge: bool = True
    required_table: str = ""
    own_figure: Callable[[Breakdown], Figure] | None = None
    group: Group = "Results"


def score_word(score_name: str) -> str:
    """Return a score's name for use in a sentence or on an axis."""
    name = score_name.replace("_", " ")
    return name if name.endswith("score") else f"{name} score"


def formula(score: ScoreDefinition) -> str:
    """Return a response's score as a fraction of `points` and the sums of `positive` and `negative`
    weights.
    """
    numerator = _sum((1.0, "points"), (score.numerator_negative, "negative"))
    denominator = _sum(
        (score.denominator_positive, "positive"), (score.denominator_negative, "negative")
    )
    return f"{numerator} / {denominator}"


def _sum(*terms: tuple[float, str]) -> str:
    """Return the sum of the terms whose factor is not 0, in parentheses if there are several."""
    parts = [_term(factor, name) for factor, name in terms if factor]
    text = " ".join(parts).removeprefix("+ ")
    return f"({text})" if len(parts) > 1 else text


def _term(factor: float, name: str) -> str:
    sign = "−" if factor < 0 else "+"
    multiple = "" if abs(factor) == 1 else f"{abs(factor):g} × "
    return f"{sign} {multiple}{name}"


def placeholder_values(benchmark: Benchmark) -> dict[str, str]:
    """Return a benchmark's values for the placeholders in texts of figures."""
    primary = benchmark.primary_score
    criteria_score = benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(criteria_score.score_name),
        "criteria_formula": formula(criteria_score),
    }
