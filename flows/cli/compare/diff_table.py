"""Differences in tables, for people."""

import click

from flows.cli.common.tables import show_table
from tasks.compare import (
    INTERVAL,
    Answer,
    Difference,
    Flips,
    decision,
    flips_of,
    notes_on,
    sentence,
    short,
    table_of,
    where_in,
)
from tasks.rules.text.numbers import counted
from warehouse import Reader

_MOST_DETAILED = 2
"""Up to so many differences are all shown in detail; of more, only the first."""
_WORST_TASKS = 5


def show(reader: Reader, answer: Answer, n_flips: int) -> None:
    """All differences, and what the first, or each of a few, consists of."""
    table = table_of(answer)
    show_table([name.lower() for name in table.columns], table.rows, n_least=table.columns.index(INTERVAL) + 1)
    for difference in answer.differences:
        click.echo(sentence(answer, difference))
    is_few = len(answer.differences) <= _MOST_DETAILED
    detailed = answer.differences if is_few else answer.differences[:1]
    for difference, flips in zip(detailed, flips_of(reader, answer.score, detailed), strict=True):
        _show_flips(answer, difference, flips, n_flips)
    if not is_few:
        click.echo(f"\n--json shows the flips of the other {len(answer.differences) - 1} comparisons.")
    for note in table.notes:
        click.echo(note)


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
            [[f.title, f.category, f.weight, decision(f.first_by_trial), decision(f.second_by_trial),
              f"{f.effect:+.3f}", f.task_id] for f in shown],
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
