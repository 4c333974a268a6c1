"""Differences as a table for people: its columns, its cells, and the notes that belong below it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.compare.differences import Answer, Difference, short
from tasks.compare.sentences import CONTEXT, distinguishing, figure, n_unequal, on_both, p_value, small_note
from tasks.rules.statistics.intervals import FEWEST_OTHERS
from tasks.rules.text.numbers import SMALL_MARK

INTERVAL = "95 % interval"
"""The column that is needed with all before it."""

Cell = str | bool | None
"""Numbers are texts, with a hyphen for a minus sign; None where there is nothing to say."""


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """A row for each difference, in the order of the answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]


def table_of(answer: Answer) -> DifferenceTable:
    """The table of an answer."""
    rows = [dict(_cells(answer, difference)) for difference in answer.differences]
    notes = (*_on_figures(answer), *answer.notes, *_on_differences(answer))
    return DifferenceTable(tuple(rows[0]), tuple(tuple(row.values()) for row in rows), tuple(dict.fromkeys(notes)))


def _cells(answer: Answer, found: Difference) -> Iterator[tuple[str, Cell]]:
    """Each column with its cell."""
    pair, paired = found.pair, found.paired
    yield "First", short(answer.kind, pair.first)
    yield "Second", short(answer.kind, pair.second)
    for name in distinguishing(answer):
        yield CONTEXT[name].capitalize(), on_both(pair.first, pair.second, name)
    yield "Split", found.split
    yield "Difference", f"{found.difference:+z.3f}"
    yield INTERVAL, _interval(found)
    yield "p", p_value(paired.p_value)
    if len(answer.differences) > 1:
        yield "p corrected", p_value(found.p_adjusted)
    yield "Significant", found.is_significant
    yield "Tasks", f"{paired.n_tasks} of {found.n_wanted}"
    smallest = paired.smallest_detectable
    yield "Smallest detectable difference", None if smallest is None else figure(smallest)
    yield "First mean", f"{found.first_mean:z.3f}"
    yield "Second mean", f"{found.second_mean:z.3f}"


def _interval(found: Difference) -> str:
    paired = found.paired
    if paired.ci_low is not None:
        return f"{paired.ci_low:+z.3f} to {paired.ci_high:+z.3f}{SMALL_MARK if paired.is_small else ''}"
    if paired.p_value is not None:
        return "nearly all tasks change alike"
    return "too few tasks differ" if n_unequal(found) else "no task differs"


def _on_figures(answer: Answer) -> Iterator[str]:
    """Notes on intervals and p-values."""
    if any(each.paired.ci_low is not None and each.paired.is_small for each in answer.differences):
        yield small_note()
    if any(each.paired.p_value is None for each in answer.differences):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if len(answer.differences) > 1:
        yield (
            "Intervals, p and smallest detectable differences are for each comparison alone; “p corrected” "
            "takes all of them into account (Holm)."
        )


def _on_differences(answer: Answer) -> Iterator[str]:
    """Notes on single differences, with the split where they do not hold for all splits."""
    splits = {difference.split for difference in answer.differences}
    for difference in answer.differences:
        for note in difference.notes:
            is_general = splits == {each.split for each in answer.differences if note in each.notes}
            yield note if is_general else f"{difference.split}: {note}"
