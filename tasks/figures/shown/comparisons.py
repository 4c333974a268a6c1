"""The figures of `prbench diff`: the differences of two models, judges, runs and others, and the flipped criteria."""

from collections.abc import Callable, Mapping
from itertools import groupby, islice
from typing import Any

from tasks.compare.differences import apart, compare, rows_of, with_verdicts
from tasks.compare.pairs import comparison_of
from tasks.figures.columns import Row, Rows, columns
from tasks.figures.figure import Figure, Page
from tasks.figures.scope import Scope
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted, true_minus

_SIDES = "first second where split"
_MOST_DETAILED, _WORST_TASKS = 2, 5
"""Largest number of comparisons with detailed tables (if there are more, only the first one has them; JSON has all),
and the number of tasks that these list."""
Parts = dict[str, list[dict[str, Any]]]


def _compared(scope: Scope, given: Mapping[str, Any]) -> Parts:
    """Return the requested differences, and the verdicts behind them.

    Raises:
        UsageError: the names or options do not say what to compare.
        PipelineError: there is nothing to compare.
    """
    if len(given["names"]) < 2:
        raise UsageError("give at least two names to compare, such as two models")
    comparison = comparison_of(
        scope.job, given["names"], given["of"], score=scope.score, is_hard=scope.is_hard, vintage=scope.vintage
    )
    result = compare(scope.reader, comparison)
    parts = apart(scope.reader, result, result.differences, given.get("n_flips"))
    return {**parts, "differences": [*map(with_verdicts, rows_of(result), parts["verdicts"])]}


def _part(name: str) -> Callable[[Scope, Mapping[str, Any]], list[dict[str, Any]]]:
    """Return a function that computes the rows of one part of a comparison; several figures share the comparison."""

    def rows(scope: Scope, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        key = ("compared", *given["names"], given["of"], given["n_flips"])
        if key not in scope.known:
            scope.known[key] = _compared(scope, given)
        parts: Parts = scope.known[key]
        return parts[name]

    return rows


def _sentences(rows: Rows) -> list[str]:
    """Return a sentence for each difference, and the notes on it."""
    sentences = [
        f"{row['sentence']}; {row['n_flips']} of {counted(row['n_compared'], 'criterion', 'criteria')} flipped, "
        f"{row['n_flips_lost']} of them lower the score" if "n_flips" in row else f"{row['sentence']}."
        for row in rows
    ]  # fmt: skip
    splits = {row["split"] for row in rows}
    notes = [
        note if splits == {other["split"] for other in rows if note in other["notes"]} else f"{row['split']}: {note}"
        for row in rows
        for note in row["notes"]
    ]
    return [true_minus(note) for note in dict.fromkeys([*sentences, *rows[0]["notes_on_all"], *notes])]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _SIDES.split())


def _detailed(rows: Rows) -> list[Row]:
    """Return the rows of all comparisons if there are few, else of the first one."""
    n_comparisons = len({_key(row) for row in rows})
    return [row for row in rows if n_comparisons <= _MOST_DETAILED or _key(row) == _key(rows[0])]


def _worst(rows: Rows) -> list[Row]:
    """Return the tasks that lose most in each detailed comparison."""
    by_comparison = groupby((row for row in _detailed(rows) if row["difference"]), _key)
    return [row for _, of_one in by_comparison for row in islice(of_one, _WORST_TASKS)]


_FLIPS = "Flips: n_gained n_lost"
_GAINS = {"n_gained": "raise the score", "n_lost": "lower the score"}
_COMMON: dict[str, Any] = {
    "given": {"names": (), "of": None, "n_flips": 10}, "empty": "No criterion flipped.",
}  # fmt: skip
DIFF = Figure(
    "diff",
    "Differences",
    "Second mean minus first mean, both before clipping, on the tasks that are complete on both sides, with its 95 % "
    "interval for other tasks of the same kind. The corrected p-value (Holm) takes all differences shown into account. "
    "The smallest detectable difference is the one that a comparison finds with a power of 80 %.",
    columns(
        _SIDES, "difference is_small ci~ no_interval p_value p_adjusted is_significant n_tasks n_tasks_wanted "
        "smallest_detectable first_mean second_mean n_compared n_flips n_flips_lost", n_compared="Criteria: compared",
    ),
    compute=_part("differences"),
    notes=_sentences,
    **_COMMON,
)  # fmt: skip
CATEGORIES = Figure(
    "diff_categories",
    "Contribution of each category to the difference",
    "The part of the difference that is due to flipped criteria, by category, largest loss first.",
    columns(_SIDES, "category n_criteria", _FLIPS, "contribution", **_GAINS),
    compute=_part("categories"),
    listed=_detailed,
    **_COMMON,
)
TASKS = Figure(
    "diff_tasks",
    "Tasks, largest loss first",
    "The score of each task on both sides, and the number of its criteria that flipped.",
    columns(_SIDES, "task_id first_score second_score difference", _FLIPS, **_GAINS),
    compute=_part("tasks"),
    listed=_worst,
    **_COMMON,
)
FLIPS = Figure(
    "diff_flips",
    "Flipped criteria, largest loss first",
    "Criteria that both sides decided differently, with the effect of the flip on the task's score.",
    columns("first second where split title category weight first_decision second_decision effect task_id"),
    compute=_part("flips"),
    listed=_detailed,
    **_COMMON,
)
FLIPPED = (CATEGORIES, TASKS, FLIPS)

COMPARE = Page(
    "compare",
    "Compare",
    "Two models, vintages (such as two nights), runs or judges, paired by task, with every verdict that changed.",
    (DIFF, *FLIPPED),
    template="compare.html",
)
"""In a folder of files the page only says how to open it."""
