"""Differences between models, judges, templates, runs, vintages or revisions, and what they consist of."""

from collections.abc import Callable, Mapping
from typing import Any

from tasks.compare.differences import compare
from tasks.compare.pairs import question_of
from tasks.compare.rows import apart, rows_of
from tasks.figures.columns import Rows, columns, ends
from tasks.figures.figure import Figure, Page
from tasks.figures.scope import Scope
from tasks.rules.statistics.intervals import FEW_OTHERS, FEWEST_OTHERS, SMALL
from tasks.rules.text.numbers import true_minus

_LONGEST_NAME = 12
"""Names of templates and revisions are hashes, of which a table shows the beginning."""


def _found(part: str = "") -> Callable[[Scope, Mapping[str, Any]], list[dict[str, Any]]]:
    """The rows of the differences between the `names` that are given, or a part of what they consist of."""

    def rows(scope: Scope, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        if len(given["names"]) < 2:
            return []
        asked = question_of(
            scope.job, given["names"], given["of"], score=scope.score, is_hard=scope.is_hard, vintage=scope.vintage
        )
        answer = compare(scope.reader, asked)
        return apart(scope.reader, answer, answer.differences)[part] if part else rows_of(answer)

    return rows


_GIVEN: Mapping[str, Any] = {"names": (), "of": None}


def _shortened(rows: Rows) -> Rows:
    return [
        {**row, **{side: row[side][:_LONGEST_NAME] for side in ("first", "second")}}
        if row["kind"] in {"template", "revision"} else row
        for row in rows
    ]  # fmt: skip


def _said(rows: Rows) -> list[str]:
    """Each difference in a sentence, and what must be known about all or one of them."""
    found = [f"{row['sentence']}." for row in rows]
    if any(row["ci_low"] is not None and row["is_small"] for row in rows):
        few = f"fewer than {SMALL} tasks, or fewer than {FEW_OTHERS} that differ"
        found.append(f"Few tasks: {few}; the interval may be too narrow.")
    if any(row["p_value"] is None for row in rows):
        found.append(f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ.")
    if len(rows) > 1:
        found.append(
            "Intervals, p and smallest detectable differences are for each comparison alone; the corrected p takes all "
            "of them into account (Holm)."
        )
    are_general = set[str]().union(*(row["notes"] for row in rows)).intersection(*(row["notes"] for row in rows))
    has_splits = len({row["split"] for row in rows}) > 1
    for row in rows:
        found += [note if note in are_general or not has_splits else f"{row['split']}: {note}" for note in row["notes"]]
    return [true_minus(note) for note in dict.fromkeys(found)]


def _distinct(rows: Rows) -> Rows:
    """The rows without the labels that all of them share, which stand beside the verdicts."""
    shared = {name: None for name in _LABELS if len({row[name] for row in rows}) == 1}
    return [{**row, **shared} for row in _shortened(rows)]


_LABELS = ("first", "second", "context", "split")
_OF = columns(" ".join(_LABELS))
_SIGNS = {"n_gained": "Raise the score", "n_lost": "Lower the score"}

DIFF = Figure(
    "diff",
    "Difference",
    "The mean of the second minus the mean of the first, before any clipping, on the tasks that are complete on both "
    "sides. Only results that are equal in everything else are paired. The interval shows how much the difference "
    "could vary with other tasks of the same kind.",
    (
        *_OF, *columns("difference"), *ends("ci"),
        *columns("is_small p_value p_adjusted is_significant n_tasks n_tasks_wanted smallest_detectable"),
        *columns("first_mean second_mean"),
    ),
    compute=_found(),
    given=_GIVEN,
    listed=_shortened,
    notes=_said,
    is_table=True,
)  # fmt: skip
VERDICTS = Figure(
    "diff_verdicts",
    "Changed verdicts",
    "How many verdicts on the criteria of tasks that both sides answered differ, and the part of the difference that "
    "they explain: all of it, unless rubrics changed between the two. Not compared are criteria that a side left "
    "undecided, those of incomplete tasks, and those in the rubric of one side only.",
    (
        *_OF, *columns("n_flips n_gained n_lost", **_SIGNS),
        *columns("n_compared n_criteria", n_compared="Compared criteria", n_criteria="All criteria"),
        *columns("n_undecided n_left_out n_in_one explained difference"),
    ),
    compute=_found("verdicts"),
    given=_GIVEN,
    listed=_shortened,
    is_table=True,
)  # fmt: skip
CHANGED_CATEGORIES = Figure(
    "diff_categories",
    "Difference by category",
    "What the changed verdicts of each category add to the difference.",
    (*_OF, *columns("category n_criteria n_gained n_lost contribution", **_SIGNS)),
    compute=_found("categories"),
    given=_GIVEN,
    listed=_distinct,
    is_table=True,
)
_MOST_TASKS = 10


def _changed(rows: Rows) -> Rows:
    """The first tasks that differ."""
    return _distinct([row for row in rows if row["difference"]][:_MOST_TASKS])


CHANGED_TASKS = Figure(
    "diff_tasks",
    "Difference by task",
    f"The score of each task on both sides, the largest loss first. The table has the first {_MOST_TASKS} that differ.",
    (*_OF, *columns("task_id first_score second_score difference n_gained n_lost", **_SIGNS)),
    compute=_found("tasks"),
    given=_GIVEN,
    listed=_changed,
    is_table=True,
)
FLIPS = Figure(
    "diff_flips",
    "Flipped criteria",
    "The criteria that both sides decided, and not alike, with what the change is worth to the score of the task, the "
    "largest loss first.",
    (*_OF, *columns("effect title category weight first_decision second_decision task_id")),
    compute=_found("flips"),
    given=_GIVEN,
    listed=_distinct,
    is_table=True,
)

COMPARE = Page(
    "compare",
    "Compare",
    "Two models, vintages (such as two nights), runs or judges, paired by task: the difference with its interval, and "
    "every verdict that changed.",
    (DIFF, VERDICTS, FLIPS, CHANGED_CATEGORIES, CHANGED_TASKS),
    template="compare.html",
)
"""In a folder of files the page only says how to open it."""
