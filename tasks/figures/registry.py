"""All figures by name."""

from collections.abc import Mapping

from tasks.figures.figure import Figure
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.capabilities import CANDIDATES, EXAMPLES
from tasks.figures.shown.corrections import DIFFERENCES
from tasks.figures.shown.judges import CRITERIA, PEOPLE
from tasks.figures.shown.lengths import LENGTHS_AND_SCORES
from tasks.figures.shown.reviews import FAILURES
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean

FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        *(figure for page in (*PAGES, COMPARE) for figure in page.figures),
        PEOPLE, CRITERIA, LENGTHS_AND_SCORES, FAILURES, DIFFERENCES, CANDIDATES, EXAMPLES,
    )
}  # fmt: skip


def figure_of(name: str) -> Figure:
    """The figure of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in FIGURES:
        raise UsageError(f"there is no figure {name}{did_you_mean(name, list(FIGURES))}; `prbench figures` lists all")
    return FIGURES[name]
