"""All figures by name, and the report's pages in the order of its navigation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from tasks.figures.figure import Figure
from tasks.figures.page import Page
from tasks.figures.shown import (
    categories,
    comparisons,
    corrections,
    data,
    judges,
    lengths,
    operations,
    overview,
)
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean

PAGES: Sequence[Page] = (
    overview.OVERVIEW,
    categories.CATEGORIES,
    categories.CAPABILITIES,
    lengths.LENGTHS,
    comparisons.CONDITIONS,
    comparisons.STOPPING,
    data.DATA,
    data.ANNOTATIONS,
    judges.JUDGES,
    corrections.DEBIASED,
    corrections.CASCADES,
    data.REVIEWS,
    operations.HISTORY,
    overview.HARD,
)
COMPARE = comparisons.COMPARE
LIVE = Page(
    "live",
    "Live",
    "Runs in progress: coverage, calls, cost, failures, and the ranking so far.",
    template="live.html",
)


FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        *(figure for page in PAGES for figure in page.figures),
        *COMPARE.figures,
        *operations.FIGURES,
        judges.PEOPLE,
        judges.CRITERIA,
        lengths.LENGTHS_AND_SCORES,
        data.REVIEW_FAILURES,
        corrections.DIFFERENCES,
        corrections.CASCADE,
        categories.CANDIDATES,
        categories.EXAMPLES,
    )
}


def figure_of(name: str) -> Figure:
    """Return the figure with a name.

    Raises:
        UsageError: there is none.
    """
    if name not in FIGURES:
        raise UsageError(
            f"there is no figure {name}{did_you_mean(name, list(FIGURES))}; `prbench figures`"
            " lists all"
        )
    return FIGURES[name]


def parsed(figure: Figure, given: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a figure from `name=value` texts; a list is given item by item.

    Raises:
        UsageError: the figure has no such parameter, or the value is of another kind.
    """
    options: dict[str, Any] = {}
    for each in given:
        name, _, text = each.partition("=")
        if name not in figure.parameters:
            hint = (
                did_you_mean(name, figure.parameters)
                or f"; it has {', '.join(figure.parameters) or 'none'}"
            )
            raise UsageError(f"{each}: {figure.name} has no parameter {name}{hint}")
        usual = figure.parameters[name]
        if isinstance(usual, list | tuple):
            options[name] = [*options.get(name, ()), text]
        elif usual is None or isinstance(usual, str):
            options[name] = text
        elif isinstance(value := yaml.safe_load(text or "null"), type(usual)):
            options[name] = value
        else:
            raise UsageError(f"{each}: must be like {name}={str(usual).lower()}")
    return options
