"""Differences in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.compare.differences import Answer, Difference, Flips, short
from tasks.compare.pairs import COLUMN_OF, Side
from tasks.rules.statistics.comparison import ALPHA, task_differences
from tasks.rules.statistics.intervals import FEW_OTHERS, FEWEST_OTHERS, SMALL
from tasks.rules.text.numbers import SMALL_MARK, counted

CONTEXT = {
    "model": "model", "judge": "judge", "judge_trial": "judge trial", "template_hash": "template", "vintage": "vintage",
    "dataset_revision": "revision",
}  # fmt: skip
"""Attributes of a side, with their names for people."""
_DECISIONS = {1.0: "met", 0.5: "partly met", 0.0: "not met"}
_HASHES = {"template_hash", "dataset_revision"}
INTERVAL = "95 % interval"
"""The column that is needed with all before it."""
Cell = str | bool | None
"""Numbers are texts, with a hyphen for a minus sign; None where there is nothing to say."""


def sentence(answer: Answer, difference: Difference) -> str:
    """What a difference says, in plain words."""
    first, second = short(answer.kind, difference.pair.first), short(answer.kind, difference.pair.second)
    where = f"on {difference.split}{where_in(answer, difference)}"
    if not n_unequal(difference):
        n_tasks = counted(difference.paired.n_tasks, "task")
        return f"{second} and {first} have the same score {where}: no task differs ({n_tasks})"
    size = f"{figure(abs(difference.difference))} {'lower' if difference.difference < 0 else 'higher'}"
    if difference.p_adjusted is None:
        return f"{second} is {size} than {first} {where}, but this cannot be tested: {_too_few(difference)}"
    evidence = _evidence(answer, difference, difference.p_adjusted)
    if difference.is_significant:
        return f"{second} is {size} than {first} {where} ({evidence}): significant"
    no_difference = f"no significant difference between {first} and {second} {where} ({second} is {size}; {evidence})"
    smallest = difference.paired.smallest_detectable
    if smallest is None:
        return no_difference
    alone = "uncorrected " if _n_tested(answer) > 1 else ""
    return f"{no_difference}; {alone}smallest detectable difference {figure(smallest)} (with a power of 80 %)"


def _evidence(answer: Answer, difference: Difference, p_adjusted: float) -> str:
    """The interval and the p-value."""
    n_tested = _n_tested(answer)
    corrected = f" corrected for {n_tested} comparisons" if n_tested > 1 else ""
    paired = difference.paired
    interval = "no interval, since nearly all tasks change by the same amount"
    if paired.ci_low is not None:
        alone = "uncorrected " if n_tested > 1 else ""
        interval = f"{alone}95 % interval {paired.ci_low:+z.3f} to {paired.ci_high:+z.3f}"
    return f"{interval}, {_p_in_words(p_adjusted)}{corrected}"


def _n_tested(answer: Answer) -> int:
    return sum(each.p_adjusted is not None for each in answer.differences)


def n_unequal(difference: Difference) -> int:
    """How many tasks have different scores on the two sides."""
    first, second = zip(*((task.first, task.second) for task in difference.tasks), strict=True)
    return int((task_differences(np.array(first), np.array(second)) != 0).sum())


def _too_few(difference: Difference) -> str:
    """Why there is neither an interval nor a test."""
    n_tasks = difference.paired.n_tasks
    if n_tasks <= FEWEST_OTHERS:
        return f"only {counted(n_tasks, 'task')}"
    return f"only {n_unequal(difference)} of {n_tasks} tasks differ"


def notes_on(flips: Flips, difference: Difference) -> list[str]:
    """Notes on the flips."""
    notes = []
    missing = flips.n_criteria - flips.n_compared
    if missing:
        causes = {
            "undecided on one side": flips.n_undecided,
            "decided, but in incomplete tasks": flips.n_left_out,
            "in the rubric of one side only": flips.n_in_one,
        }
        listed = ", ".join(f"{number} {cause}" for cause, number in causes.items() if number)
        n_criteria = counted(flips.n_criteria, "criterion", "criteria")
        notes.append(f"{missing} of {n_criteria} could not be compared: {listed}.")
    if f"{flips.explained:+.3f}" != f"{difference.difference:+.3f}":
        notes.append(
            f"The flips explain {flips.explained:+.3f} of {difference.difference:+.3f}; the rest is due to rubrics "
            "that changed between the two."
        )
    return notes


def distinguishing(answer: Answer) -> list[str]:
    """The attributes that distinguish the differences, or that differ between the sides beside what is compared."""
    own = COLUMN_OF.get(answer.kind)
    pairs = [difference.pair for difference in answer.differences]
    return [
        name
        for name in CONTEXT
        if name != own
        and (
            len({on_both(pair.first, pair.second, name) for pair in pairs}) > 1
            or any(getattr(pair.first.model_run, name) != getattr(pair.second.model_run, name) for pair in pairs)
        )
    ]


def on_both(first: Side, second: Side, name: str) -> str:
    """An attribute of both sides, with an arrow if it differs."""
    values = [str(getattr(side.model_run, name)) for side in (first, second)]
    if name in _HASHES:
        values = [value[:12] for value in values]
    return values[0] if values[0] == values[1] else " → ".join(values)


def where_in(answer: Answer, difference: Difference) -> str:
    """What distinguishes a difference from the others, as the end of a phrase."""
    pair = difference.pair
    return "".join(f", {CONTEXT[name]} {on_both(pair.first, pair.second, name)}" for name in distinguishing(answer))


def decision(by_trial: Sequence[float]) -> str:
    """What was decided on a criterion: in a word where all trials agree, else in how many of them it is met."""
    counts = Counter(by_trial)
    if len(counts) == 1:
        return _DECISIONS[by_trial[0]]
    met = [f"{_DECISIONS[value]} in {counts[value]}" for value in (1.0, 0.5) if counts[value]]
    return f"{' and '.join(met)} of {counted(len(by_trial), 'trial')}"


def small_note() -> str:
    """What the mark at an interval means."""
    few = f"fewer than {SMALL} tasks, or fewer than {FEW_OTHERS} that differ"
    return f"{SMALL_MARK} {few}: the interval may be too narrow"


def figure(size: float | None) -> str | None:
    """Three decimals, or one digit where three decimals would show 0."""
    if size is None:
        return None
    return f"{size:.3f}" if size >= 0.0005 or size == 0 else f"{size:.1g}"


def interval_in_words(
    low: float | None, high: float | None, p_value: float | None, *, is_small: bool | None, differ: float | None
) -> str:
    """The interval of a difference, or why there is none; `differ` is not 0 if any task differs."""
    if low is not None:
        return f"{low:+z.3f} to {high:+z.3f}{SMALL_MARK if is_small else ''}"
    if p_value is not None:
        return "nearly all tasks change alike"
    return "too few tasks differ" if differ else "no task differs"


def why_no_interval(difference: Difference) -> str | None:
    """Why a difference has no interval; None where it has one."""
    paired = difference.paired
    if paired.ci_low is not None:
        return None
    if paired.p_value is not None:
        return "nearly all tasks change alike"
    return "too few tasks differ" if n_unequal(difference) else "no task differs"


def notes_on_all(answer: Answer) -> list[str]:
    """Notes on intervals and p-values, and those that hold for all differences."""
    return [*_on_figures(answer), *answer.notes]


def p_value(value: float | None) -> str | None:
    """A p-value with three decimals."""
    if value is None:
        return None
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _p_in_words(value: float) -> str:
    shown = p_value(value)
    # What is rounded to the level could be on either side of it.
    if value != ALPHA and shown == f"{ALPHA:.3f}":
        shown = f"{'<' if value < ALPHA else '>'} {shown}"
    return f"p {shown}" if shown and shown[0] in "<>" else f"p = {shown}"


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
    yield (
        INTERVAL,
        interval_in_words(
            paired.ci_low, paired.ci_high, paired.p_value, is_small=paired.is_small, differ=n_unequal(found)
        ),
    )
    yield "p", p_value(paired.p_value)
    if len(answer.differences) > 1:
        yield "p corrected", p_value(found.p_adjusted)
    yield "Significant", found.is_significant
    yield "Tasks", f"{paired.n_tasks} of {found.n_wanted}"
    yield "Smallest detectable difference", figure(paired.smallest_detectable)
    yield "First mean", f"{found.first_mean:z.3f}"
    yield "Second mean", f"{found.second_mean:z.3f}"


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
