"""Differences in tables, for people."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from flows.cli.common.tables import SMALL_MARK, show_table
from flows.cli.compare.figures import small_note
from tasks.compare import (
    CONTEXT,
    Answer,
    Difference,
    Flips,
    counted,
    distinguishing,
    figure,
    flips_of,
    n_unequal,
    notes_on,
    on_both,
    p_value,
    sentence,
    short,
    where_in,
)
from tasks.rules.statistics.intervals import FEWEST_OTHERS
from warehouse import Reader

_MOST_DETAILED = 2
"""Up to so many differences are all shown in detail; of more, only the first."""
_WORST_TASKS = 5
_INTERVAL = "95 % interval"


def show(reader: Reader, answer: Answer, n_flips: int) -> None:
    """All differences, and what the first, or each of a few, consists of."""
    columns, rows = _table(answer)
    show_table(columns, rows, n_least=columns.index(_INTERVAL) + 1)
    for difference in answer.differences:
        click.echo(sentence(answer, difference))
    is_few = len(answer.differences) <= _MOST_DETAILED
    detailed = answer.differences if is_few else answer.differences[:1]
    for difference, flips in zip(detailed, flips_of(reader, answer.score, detailed), strict=True):
        _show_flips(answer, difference, flips, n_flips)
    if not is_few:
        click.echo(f"\n--json shows the flips of the other {len(answer.differences) - 1} comparisons.")
    for note in dict.fromkeys([*_notes_on_figures(answer), *answer.notes, *_own_notes(answer)]):
        click.echo(note)


def _notes_on_figures(answer: Answer) -> Iterator[str]:
    """Notes on intervals and p-values."""
    if any(each.paired.ci_low is not None and each.paired.is_small for each in answer.differences):
        yield small_note()
    if any(each.paired.p_value is None for each in answer.differences):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if len(answer.differences) > 1:
        yield "Intervals and p are for each comparison alone; `p corrected` takes all of them into account (Holm)."


def _own_notes(answer: Answer) -> Iterator[str]:
    """Notes on single differences, with the split where they do not hold for all splits."""
    splits = {difference.split for difference in answer.differences}
    for difference in answer.differences:
        for note in difference.notes:
            is_general = splits == {each.split for each in answer.differences if note in each.notes}
            yield note if is_general else f"{difference.split}: {note}"


def _table(answer: Answer) -> tuple[list[str], list[list[Any]]]:
    context = distinguishing(answer)
    tested = ["p", "p corrected"] if len(answer.differences) > 1 else ["p"]
    columns = [
        "first", "second", *(CONTEXT[name] for name in context), "split", "difference", _INTERVAL,
        *tested, "significant", "tasks", "smallest detectable difference", "first mean", "second mean",
    ]  # fmt: skip
    return columns, [_row(answer, each, context, len(tested)) for each in answer.differences]


def _row(answer: Answer, difference: Difference, context: Sequence[str], n_tested: int) -> list[Any]:
    pair, paired = difference.pair, difference.paired
    return [
        short(answer.kind, pair.first),
        short(answer.kind, pair.second),
        *(on_both(pair.first, pair.second, name) for name in context),
        difference.split,
        f"{difference.difference:+.3f}",
        _interval(difference),
        *[p_value(value) for value in (paired.p_value, difference.p_adjusted)][:n_tested],
        difference.is_significant,
        f"{paired.n_tasks} of {difference.n_wanted}",
        None if paired.smallest_detectable is None else figure(paired.smallest_detectable),
        f"{difference.first_mean:.3f}",
        f"{difference.second_mean:.3f}",
    ]


def _interval(difference: Difference) -> str:
    paired = difference.paired
    if paired.ci_low is not None:
        return f"{paired.ci_low:.3f} to {paired.ci_high:.3f}{SMALL_MARK if paired.is_small else ''}"
    return "too few tasks differ" if n_unequal(difference) else "no task differs"


def _show_flips(answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> None:
    first, second = short(answer.kind, difference.pair.first), short(answer.kind, difference.pair.second)
    n_lost = sum(flip.effect < 0 for flip in flips.flips)
    click.echo(
        f"\nFrom {first} to {second} on {difference.split}{where_in(answer, difference)}: {len(flips.flips)} of "
        f"{counted(flips.n_compared, 'criterion', 'criteria')} flipped, {n_lost} of them lower the score"
    )
    if flips.flips:
        _show_categories_and_tasks(flips)
    if flips.flips and n_flips:
        shown = flips.flips[:n_flips]
        show_table(
            ["title", "category", "weight", "first", "second", "effect", "task"],
            [[f.title, f.category, f.weight, f.first_value, f.second_value, f"{f.effect:+.3f}", f.task_id]
             for f in shown],
            title=f"Flipped criteria, {len(shown)} of {len(flips.flips)}, largest loss first",
        )  # fmt: skip
    for note in notes_on(flips, difference):
        click.echo(note)


def _show_categories_and_tasks(flips: Flips) -> None:
    show_table(
        ["category", "criteria", "raise the score", "lower the score", "contribution"],
        [[c.category, c.n_criteria, c.n_gained, c.n_lost, f"{c.contribution:+.4f}"] for c in flips.categories],
        title="Contribution of each category to the difference",
    )
    worst = [task for task in flips.tasks if task.difference][:_WORST_TASKS]
    show_table(
        ["task", "first", "second", "difference", "raise the score", "lower the score"],
        [[t.task_id, f"{t.first:.3f}", f"{t.second:.3f}", f"{t.difference:+.3f}", t.n_gained, t.n_lost]
         for t in worst],
        title="Tasks, largest loss first",
    )  # fmt: skip
