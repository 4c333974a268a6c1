"""Differences in words and tables, for people."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np

from flows.cli.common.output import show_table
from tasks.compare import ALPHA, Answer, Difference, Flips, Side, flips_of, short
from tasks.rules.comparison import task_differences
from tasks.rules.statistics import FEW_OTHERS, FEWEST_OTHERS, SMALL
from warehouse import Reader

SMALL_MARK = "°"
_MOST_DETAILED = 2
"""Up to so many differences are all taken apart; of more, the first is."""
_WORST_TASKS = 5
_CONTEXT = {
    "model": "model", "judge": "judge", "judge_trial": "judge trial", "template_hash": "template", "vintage": "vintage",
    "dataset_revision": "revision",
}  # fmt: skip
_HASHES = {"template_hash", "dataset_revision"}
_COLUMN_OF = {"template": "template_hash", "revision": "dataset_revision"}


def sentence(answer: Answer, difference: Difference) -> str:
    """What a difference says, in plain words."""
    first, second = short(answer.kind, difference.pair.first), short(answer.kind, difference.pair.second)
    where = f"on {difference.split}{_where(answer, difference)}"
    paired = difference.paired
    n_tasks = _counted(paired.n_tasks, "task", "tasks")
    if not _n_unequal(difference):
        return f"{second} and {first} score the same {where}: no task differs ({n_tasks})"
    size = f"{_figure(abs(difference.difference))} {'lower' if difference.difference < 0 else 'higher'}"
    if difference.p_adjusted is None:
        return f"{second} is {size} than {first} {where}, but {_too_few(difference)} to tell it from chance"
    n_tested = sum(each.p_adjusted is not None for each in answer.differences)
    corrected = f" corrected for {n_tested} comparisons" if n_tested > 1 else ""
    interval = "no interval, since nearly all tasks change by the same"
    if paired.ci_low is not None:
        alone = "uncorrected " if n_tested > 1 else ""
        interval = f"{alone}95 % interval {paired.ci_low:.3f} to {paired.ci_high:.3f}"
    shown = f"{interval}, {_chance(difference.p_adjusted)}{corrected}"
    if difference.is_significant:
        return f"{second} is {size} than {first} {where} ({shown}): more than chance"
    told = f"no difference shown between {first} and {second} {where} ({second} is {size}; {shown})"
    if paired.smallest_detectable is None:
        return told
    return f"{told}; this data would show one of {_figure(paired.smallest_detectable)} four times in five"


def _n_unequal(difference: Difference) -> int:
    first, second = zip(*((task.first, task.second) for task in difference.tasks), strict=True)
    return int((task_differences(np.array(first), np.array(second)) != 0).sum())


def _too_few(difference: Difference) -> str:
    """Why there is neither an interval nor a test."""
    n_tasks = difference.paired.n_tasks
    if n_tasks <= FEWEST_OTHERS:
        return f"{_counted(n_tasks, 'task is', 'tasks are')} too few"
    return f"too few tasks differ ({_n_unequal(difference)} of {n_tasks})"


def notes_on(flips: Flips, difference: Difference) -> list[str]:
    """What must be known beside the flips."""
    notes = []
    missing = flips.n_criteria - flips.n_compared
    if missing:
        causes = {
            "undecided on a side": flips.n_undecided,
            "decided, in tasks that are incomplete": flips.n_left_out,
            "in the rubric of one side only": flips.n_in_one,
        }
        told = ", ".join(f"{number} {cause}" for cause, number in causes.items() if number)
        notes.append(
            f"{missing} of {_counted(flips.n_criteria, 'criterion', 'criteria')} could not be compared: {told}."
        )
    if f"{flips.explained:+.3f}" != f"{difference.difference:+.3f}":
        notes.append(
            f"The flips make {flips.explained:+.3f} of {difference.difference:+.3f}; the rest is from rubrics that "
            "changed between the two."
        )
    return notes


def show(reader: Reader, answer: Answer, n_flips: int) -> None:
    """All differences, and what the first, or each of a few, is made of."""
    columns, rows = _table(answer)
    show_table(columns, rows, n_least=columns.index("95 % interval") + 1)
    for difference in answer.differences:
        click.echo(sentence(answer, difference))
    is_few = len(answer.differences) <= _MOST_DETAILED
    detailed = answer.differences if is_few else answer.differences[:1]
    for difference, flips in zip(detailed, flips_of(reader, answer.score, detailed), strict=True):
        _show_flips(answer, difference, flips, n_flips)
    if not is_few:
        click.echo(f"\nWhat the other {len(answer.differences) - 1} are made of is in --json.")
    if any(each.paired.ci_low is not None and each.paired.is_small for each in answer.differences):
        few = f"fewer than {SMALL} tasks, or fewer than {FEW_OTHERS} that differ"
        click.echo(f"{SMALL_MARK} {few}: the interval may be too narrow")
    if any(each.paired.p_value is None for each in answer.differences):
        click.echo(f"Where fewer than {FEWEST_OTHERS} tasks differ, there is no interval and no test.")
    if len(answer.differences) > 1:
        click.echo(
            "Intervals and p are those of each comparison alone; only `p corrected` allows for all of them (Holm)."
        )
    for note in dict.fromkeys([*answer.notes, *_own_notes(answer)]):
        click.echo(note)


def _own_notes(answer: Answer) -> Iterator[str]:
    """What is to be known of single differences; with its split where it does not hold for all splits."""
    splits = {difference.split for difference in answer.differences}
    for difference in answer.differences:
        for note in difference.notes:
            is_general = splits == {each.split for each in answer.differences if note in each.notes}
            yield note if is_general else f"{difference.split}: {note}"


def _table(answer: Answer) -> tuple[list[str], list[list[Any]]]:
    telling = _telling(answer)
    tested = ["p", "p corrected"] if len(answer.differences) > 1 else ["p"]
    columns = [
        "first", "second", *(_CONTEXT[name] for name in telling), "split", "difference", "95 % interval",
        *tested, "more than chance", "tasks", "would show", "first mean", "second mean",
    ]  # fmt: skip
    return columns, [_row(answer, each, telling, len(tested)) for each in answer.differences]


def _row(answer: Answer, difference: Difference, telling: Sequence[str], n_tested: int) -> list[Any]:
    pair, paired = difference.pair, difference.paired
    return [
        short(answer.kind, pair.first),
        short(answer.kind, pair.second),
        *(_on_both(pair.first, pair.second, name) for name in telling),
        difference.split,
        f"{difference.difference:+.3f}",
        _interval(difference),
        *[_p_value(value) for value in (paired.p_value, difference.p_adjusted)][:n_tested],
        difference.is_significant,
        f"{paired.n_tasks} of {difference.n_wanted}",
        None if paired.smallest_detectable is None else _figure(paired.smallest_detectable),
        f"{difference.first_mean:.3f}",
        f"{difference.second_mean:.3f}",
    ]


def _interval(difference: Difference) -> str:
    paired = difference.paired
    if paired.ci_low is not None:
        return f"{paired.ci_low:.3f} to {paired.ci_high:.3f}{SMALL_MARK if paired.is_small else ''}"
    return "too few tasks differ" if _n_unequal(difference) else "no task differs"


def _telling(answer: Answer) -> list[str]:
    """The attributes that tell the differences apart, or that differ between the sides beside what is compared."""
    own = _COLUMN_OF.get(answer.kind, answer.kind)
    pairs = [difference.pair for difference in answer.differences]
    return [
        name
        for name in _CONTEXT
        if name != own
        and (
            len({_on_both(pair.first, pair.second, name) for pair in pairs}) > 1
            or any(getattr(pair.first.series, name) != getattr(pair.second.series, name) for pair in pairs)
        )
    ]


def _on_both(first: Side, second: Side, name: str) -> str:
    values = [str(getattr(side.series, name)) for side in (first, second)]
    if name in _HASHES:
        values = [value[:12] for value in values]
    return values[0] if values[0] == values[1] else " → ".join(values)


def _where(answer: Answer, difference: Difference) -> str:
    pair = difference.pair
    return "".join(f", {_CONTEXT[name]} {_on_both(pair.first, pair.second, name)}" for name in _telling(answer))


def _show_flips(answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> None:
    first, second = short(answer.kind, difference.pair.first), short(answer.kind, difference.pair.second)
    n_lost = sum(flip.effect < 0 for flip in flips.flips)
    click.echo(
        f"\nFrom {first} to {second} on {difference.split}{_where(answer, difference)}: {len(flips.flips)} of "
        f"{_counted(flips.n_compared, 'criterion', 'criteria')} flipped, {n_lost} of them lower the score"
    )
    if flips.flips:
        show_table(
            ["category", "criteria", "raise", "lower", "contribution"],
            [[c.category, c.n_criteria, c.n_gained, c.n_lost, f"{c.contribution:+.4f}"] for c in flips.categories],
            title="By category, with what each contributes to the difference",
        )
        worst = [task for task in flips.tasks if task.difference][:_WORST_TASKS]
        show_table(
            ["task_id", "first", "second", "difference", "raise", "lower"],
            [[t.task_id, f"{t.first:.3f}", f"{t.second:.3f}", f"{t.difference:+.3f}", t.n_gained, t.n_lost]
             for t in worst],
            title="Tasks, worst first",
        )  # fmt: skip
    if flips.flips and n_flips:
        shown = flips.flips[:n_flips]
        show_table(
            ["title", "category", "weight", "first", "second", "effect", "task_id"],
            [[f.title, f.category, f.weight, f.first_value, f.second_value, f"{f.effect:+.3f}", f.task_id]
             for f in shown],
            title=f"Flipped criteria, {len(shown)} of {len(flips.flips)}, worst for the task's score first",
        )  # fmt: skip
    for note in notes_on(flips, difference):
        click.echo(note)


def _counted(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _figure(size: float) -> str:
    """Three decimals, or one digit of what would be nothing by them."""
    return f"{size:.3f}" if size >= 0.0005 or size == 0 else f"{size:.1g}"


def _p_value(value: float | None) -> str | None:
    if value is None:
        return None
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _chance(p_value: float) -> str:
    told = _p_value(p_value)
    # What is rounded up to the level would look like a contradiction.
    if p_value < ALPHA and told == f"{ALPHA:.3f}":
        told = "< 0.050"
    return f"p {told}" if told and told.startswith("<") else f"p = {told}"
