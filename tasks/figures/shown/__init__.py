"""All figures by name, and the report's pages in the order of its navigation."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
    successions,
)
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean, hint_on

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
    successions.SUCCESSIONS,
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


_FIGURES: list[Figure] = []
for _page in (*PAGES, COMPARE):
    _FIGURES += _page.figures
_FIGURES += [
    operations.STATUS,
    operations.SPEND,
    operations.LATEST_RUNS,
    operations.DISK,
    operations.BENCHMARKS,
    judges.PEOPLE,
    judges.CRITERIA,
    lengths.LENGTHS_AND_SCORES,
    data.REVIEW_FAILURES,
    corrections.DIFFERENCES,
    corrections.CASCADE,
    categories.CANDIDATES,
    categories.EXAMPLES,
]
FIGURES: Mapping[str, Figure] = {figure.name: figure for figure in _FIGURES}
"""Name -> figure: those of pages, and those that only commands show."""


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


def parse_parameters(figure: Figure, texts: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a figure from `name=value` texts; a list is given item by item.

    Raises:
        UsageError: the figure has no such parameter, it cannot have the value, or a required one is
            missing.
    """
    parameters = figure.settable_parameters
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in parameters:
            hint = hint_on(name, parameters)
            raise UsageError(f"{text}: {figure.name} has no parameter {name}{hint}")
        refuse_other_choice(figure, name, value, text)
        default = parameters[name]
        if isinstance(default, list | tuple):
            values[name] = [*values.get(name, ()), value]
        elif name.startswith("n_"):  # a number of rows; None is all of them
            values[name] = _parsed(text, default or _SOME_ROWS)
            if values[name] < 1:
                raise UsageError(f"{text}: must be at least 1")
        elif default is None or isinstance(default, str):
            values[name] = value
        else:
            values[name] = _parsed(text, default)
    missing_names = [f"{name}=NAME" for name in figure.required if not values.get(name)]
    if missing_names:
        raise UsageError(f"{figure.name}: give {' and '.join(missing_names)}")
    return values


_SOME_ROWS = 10
"""The example in the message on a wrong number of rows whose default is all."""


def _parsed(text: str, default: Any) -> Any:
    """Return the value of a `name=value` text, of the type of the default."""
    name, _, value = text.partition("=")
    parsed = None
    with suppress(yaml.YAMLError):
        parsed = yaml.safe_load(value or "null")
    if type(parsed) is not type(default):
        raise UsageError(f"{text}: must be like {name}={str(default).lower()}")
    return parsed


def refuse_other_choice(figure: Figure, name: str, value: str, text: str) -> None:
    """Refuse a value that a parameter cannot have; `text` is what the user gave.

    Raises:
        UsageError: the parameter has choices, and the value is none of them.
    """
    choices = figure.choices.get(name)
    if choices and value not in choices:
        raise UsageError(f"{text}: must be one of {', '.join(choices)}")
