"""What `diff` shows: tables for people, and everything for machines."""

from dataclasses import asdict
from typing import Any

import click

from flows.cli.output import show_table
from tasks.compare.differences import Answer, Difference, Flip, Flips, flips_of, short, with_explanations
from tasks.compare.sentences import (
    INTERVAL,
    decision,
    notes_on,
    sentence,
    table_of,
    where_in,
)
from tasks.rules.text.numbers import counted
from warehouse import Reader

_MOST_DETAILED = 2
"""Up to so many differences are all shown in detail; of more, only the first."""
_WORST_TASKS = 5


def show_diff(reader: Reader, answer: Answer, n_flips: int) -> None:
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


def diff_as_json(reader: Reader, answer: Answer, n_flips: int) -> dict[str, Any]:
    """Everything that is known of the differences."""
    taken_apart = zip(answer.differences, flips_of(reader, answer.score, answer.differences), strict=True)
    comparisons = [_comparison(reader, answer, difference, flips, n_flips) for difference, flips in taken_apart]
    return {"of": answer.kind, "score": answer.score, "comparisons": comparisons, "notes": list(answer.notes)}


_COUNTS = ("n_criteria", "n_compared", "n_undecided", "n_left_out", "n_in_one")


def _comparison(reader: Reader, answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> dict[str, Any]:
    pair = difference.pair
    sides = {
        place: {"name": side.name} | {k: v for k, v in asdict(side.model_run).items() if k != "model_run_id"}
        for place, side in (("first", pair.first), ("second", pair.second))
    }
    return {
        **sides, **{name: getattr(difference, name) for name in ("split", "first_mean", "second_mean")},
        "n_tasks_wanted": difference.n_wanted, **asdict(difference.paired),
        **{name: getattr(difference, name) for name in ("p_adjusted", "is_significant")},
        "sentence": sentence(answer, difference), **{name: getattr(flips, name) for name in _COUNTS},
        "n_flips": len(flips.flips), "explained": flips.explained,
        "categories": [*map(asdict, flips.categories)], "tasks": [*map(asdict, flips.tasks)],
        "flips": [_flip(flip) for flip in with_explanations(reader, pair, flips.flips[:n_flips])],
        "notes": [*difference.notes, *notes_on(flips, difference)],
    }  # fmt: skip


def _flip(flip: Flip) -> dict[str, Any]:
    record = {name: value for name, value in asdict(flip).items() if name not in {"explanations", "first_criterion_id"}}
    first, second = flip.explanations
    return record | {"first_explanations": list(first), "second_explanations": list(second)}
