"""Comparisons: of two models, judges or runs, with the flipped criteria (`prbench diff`).

Two other pages show conditions (a model compared with its baseline), and comparisons that end when
they are settled.
"""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

from tasks.compare.pairs import Comparison
from tasks.figures import charts
from tasks.figures.addresses import side_by_side
from tasks.figures.figure import (
    BY_LABEL,
    WHOLE_OR_CATEGORIES,
    Column,
    ColumnGroup,
    Figure,
    Interval,
    Kind,
    Parameters,
    Row,
    Rows,
    grouped,
)
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted, list_text, true_minus

_COMPARED = ("first", "second", "where", "split")
"""The columns that name a comparison."""
_MOST_DETAILED = 2
"""Largest number of comparisons with detailed tables; if there are more, only the first one has
them. JSON has all.
"""
_WORST_TASKS = 5
"""Number of tasks that the table of tasks lists for each comparison."""
Parts = dict[str, list[dict[str, Any]]]


def subject(rows: Rows) -> str:
    """Return one line that says what rows of differences compare: names, vintages, models, judges
    and splits.
    """
    vintages_by_name: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for side in ("first", "second"):
            vintages_by_name[row[side]].append(row[f"{side}_vintage"])
    vintages = {name: list_text(name_vintages) for name, name_vintages in vintages_by_name.items()}
    is_same_vintage = len(set(vintages.values())) == 1
    names = []
    for name, vintage in vintages.items():
        is_in_name = name == vintage or name.endswith(f"@{vintage}")
        names.append(name if is_same_vintage or is_in_name else f"{name} (vintage {vintage})")
    parts = [f"Comparing {names[0]} with {list_text(names[1:])}"]
    if is_same_vintage:
        parts.append(f"in vintage {vintages[rows[0]['first']]}")
    kind = rows[0]["kind"]
    if kind != "model":
        parts.append(f"responses of {list_text(row['first_model'] for row in rows)}")
    if kind != "judge":
        parts.append(f"judged by {list_text(row['first_judge'] for row in rows)}")
    parts.append(f"on {list_text(row['split'] for row in rows)}")
    return ", ".join(parts) + "."


def _compared(scope: Scope, parameters: Parameters) -> Parts:
    """Return the requested differences, and the verdicts behind them.

    Raises:
        UsageError: the names or options do not say what to compare.
        PipelineError: there is nothing to compare.
    """
    names = parameters["names"]
    if len(names) < 2:
        raise UsageError("give at least two names to compare, such as two models")
    comparison = Comparison(
        scope.job,
        names,
        parameters["of"],
        scope.score,
        scope.is_hard,
        scope.vintage,
    )
    # It imports Polars, which few figures need.
    from tasks.compare.differences import compare, difference_details, rows_of, with_verdicts

    result = compare(scope.reader, comparison)
    parts = difference_details(scope.reader, result, result.differences, parameters["n_flips"])
    rows = map(with_verdicts, rows_of(result), parts["verdicts"])
    return parts | {"differences": list(rows)}


def _rows_of_part(name: str, scope: Scope, parameters: Parameters) -> list[dict[str, Any]]:
    """Return the rows of one part of a comparison; several figures share the comparison."""
    key = ("compared", *parameters["names"], parameters["of"], parameters["n_flips"])
    if key not in scope.shared_results:
        scope.shared_results[key] = _compared(scope, parameters)
    return scope.shared_results[key][name]


def _sentences(rows: Rows) -> list[str]:
    """Return a sentence for each difference, and the notes on it."""
    sentences = [_sentence(row) for row in rows]
    sentences += rows[0]["notes_on_all"]
    n_splits = len({row["split"] for row in rows})
    splits_by_note: dict[str, set[str]] = {}
    for row in rows:
        for note in row["notes"]:
            splits_by_note.setdefault(note, set()).add(row["split"])
    # A note that does not hold on all splits names its split.
    for row in rows:
        for note in row["notes"]:
            is_on_all = len(splits_by_note[note]) == n_splits
            sentences.append(note if is_on_all else f"{row['split']}: {note}")
    return [true_minus(sentence) for sentence in dict.fromkeys(sentences)]


def _sentence(row: Row) -> str:
    # On the page Compare only the first difference has its flips counted.
    if "n_flips" not in row:
        return f"{row['sentence']}."
    criteria = counted(row["n_compared"], "criterion", "criteria")
    return (
        f"{row['sentence']}; {row['n_flips']} of {criteria} flipped, {row['n_flips_lost']} of them"
        " lower the score"
    )


def _detailed(rows: Rows) -> list[Row]:
    """Return the rows of all comparisons if there are few, else of the first one."""
    comparisons = list(grouped(rows, *_COMPARED).values())
    return list(rows) if len(comparisons) <= _MOST_DETAILED else comparisons[0]


def _worst(rows: Rows) -> list[Row]:
    """Return the first tasks with a difference of each detailed comparison; the largest losses are
    first.
    """
    changed_rows = [row for row in _detailed(rows) if row["difference"]]
    worst_rows: list[Row] = []
    for comparison_rows in grouped(changed_rows, *_COMPARED).values():
        worst_rows += comparison_rows[:_WORST_TASKS]
    return worst_rows


_FLIPS = ColumnGroup(
    "Flips", [Column("n_gained", "raise the score"), Column("n_lost", "lower the score")]
)
_COMMON: dict[str, Any] = {
    "parameters": {"names": (), "of": None, "n_flips": 10},
    "empty": "No criterion flipped.",
}
DIFF = Figure(
    "diff",
    "Differences",
    "Second mean minus first mean, both before clipping, on the tasks that are complete on both"
    " sides, with its 95 % interval for other tasks of the same kind. The corrected p-value (Holm)"
    " takes all differences shown into account. The smallest detectable difference is the one that"
    " a comparison finds with a power of 80 %.",
    (
        *_COMPARED,
        Column("difference", few="is_small"),
        Interval("ci", "signed"),
        "no_interval",
        "p_value",
        "p_adjusted",
        "is_significant",
        "n_tasks",
        "n_tasks_wanted",
        "smallest_detectable",
        "first_mean",
        "second_mean",
        Column("n_compared", "compared", group="Criteria"),
        "n_flips",
        "n_flips_lost",
    ),
    compute=partial(_rows_of_part, "differences"),
    heading=subject,
    notes=_sentences,
    essential=["first", "second", "difference", "ci_low", "p_adjusted"],
    boards=["where", "split"],
    **_COMMON,
)
CATEGORIES = Figure(
    "diff_categories",
    "Contribution of each category to the difference",
    "The part of the difference that is due to flipped criteria, by category, largest loss first.",
    (*_COMPARED, "category", "n_criteria", _FLIPS, "contribution"),
    compute=partial(_rows_of_part, "categories"),
    listed=_detailed,
    boards=_COMPARED,
    **_COMMON,
)
TASKS = Figure(
    "diff_tasks",
    "Tasks, largest loss first",
    "The score of each task on both sides, and the number of its criteria that flipped.",
    (*_COMPARED, "task_id", "first_score", "second_score", "difference", _FLIPS),
    compute=partial(_rows_of_part, "tasks"),
    listed=_worst,
    boards=_COMPARED,
    **_COMMON,
)
FLIPS = Figure(
    "diff_flips",
    "Flipped criteria, largest loss first",
    "Criteria that both sides decided differently, with the effect of the flip on the task's"
    " score.",
    (
        *_COMPARED,
        "title",
        "category",
        "weight",
        "first_decision",
        "second_decision",
        "effect",
        "task_id",
    ),
    compute=partial(_rows_of_part, "flips"),
    listed=_detailed,
    essential=["title", "category", "weight", "first_decision", "second_decision", "effect"],
    boards=_COMPARED,
    **_COMMON,
)
COMPARE = Page(
    "compare",
    "Compare",
    "Two models, vintages (such as two nights), runs or judges, paired by task, with every verdict"
    " that changed.",
    (DIFF, CATEGORIES, TASKS, FLIPS),
    template="compare.html",
)
"""In a folder of files the page only says how to open it."""


_TRUST = (
    "The 95 % interval is for other tasks of the same kind, not for another run: one trial does not"
    " show how much a repetition would differ. A difference is significant if its p-value,"
    " corrected for all comparisons of this figure on one split under one judge (Holm), is at most"
    " 0.05; the interval is not corrected."
)
_COMPARISON = ("judge_config", "split", "shared_model", "condition")
_DIFFERENCE = (
    Column("difference", few="is_small"),
    Interval("ci", "signed"),
    "baseline",
    "no_interval",
    "p_value",
    "p_holm",
    "n_comparisons",
    "is_significant",
    "smallest_detectable",
    "baseline_mean_score",
    Column("mean_score", "condition", group="Mean score"),
    "n_tasks",
    "n_tasks_wanted",
    "n_trials",
)


def _both(name: str, kind: Kind, title: str, ratio: str = "") -> tuple[Column, ...]:
    """Return the columns of a value under the baseline and under the condition, and of the ratio of
    the two.
    """
    pair = (
        Column(f"baseline_{name}", "baseline", kind, title),
        Column(name, "condition", kind, title),
    )
    return (*pair, Column(ratio, "factor", "number", title)) if ratio else pair


_FROM_BASELINE = Figure(
    "conditions",
    "Difference from the baseline",
    "Mean $score under a condition minus that under the baseline, on the tasks with a complete"
    " trial on both sides, before any clipping. To the right the condition is better."
    f" {_TRUST}",
    (*_COMPARISON, *_DIFFERENCE),
    charts.intervals("split", value="difference", label="name", zero=True, hollow="is_small"),
    query="conditions/condition_differences",
    mart="condition_differences",
    parameters={"breakdown": "all"},
    choices=WHOLE_OR_CATEGORIES,
    essential=["shared_model", "condition", "difference", "ci_low", "p_holm", "n_tasks"],
)
_BY_CATEGORY = replace(
    _FROM_BASELINE,
    name="condition_categories",
    title="Difference by category",
    says="The same over the criteria of one category ($criteria_score: $criteria_formula)."
    f" {_TRUST}",
    shows=(*_COMPARISON, Column("label", "Category"), *_DIFFERENCE),
    charts=charts.intervals(
        "split",
        label="label",
        value="difference",
        hollow="is_small",
        name="name",
        is_sorted=True,
        zero=True,
    ),
    breakdown="category",
    parameters={"breakdown": "category"},
    boards=BY_LABEL,
)

CONDITIONS = Page(
    "conditions",
    "Conditions",
    "The effect of tools, effort or a system prompt: each model under several conditions, compared"
    " with its baseline.",
    (
        _FROM_BASELINE,
        _BY_CATEGORY,
        Figure(
            "condition_responses",
            "Length, cost and time",
            "Means over the tasks with a usable response on both sides; tokens, cost and seconds"
            " only where they are known on both. The factor is the mean under the condition divided"
            " by that under the baseline.",
            (
                *_COMPARISON,
                "baseline",
                *_both("mean_chars_alnum", "count", "Letters and digits", "chars_ratio"),
                *_both("mean_completion_tokens", "count", "Tokens", "tokens_ratio"),
                *_both("mean_cost_usd", "price", "Cost of a response", "usd_ratio"),
                *_both("mean_latency_s", "number", "Seconds", "latency_ratio"),
                *_both("n_failed", "count", "Failed"),
                *_both("n_responses", "count", "Responses"),
            ),
            query="conditions/condition_differences",
            mart="condition_differences",
            parameters={"breakdown": "all"},
            choices=WHOLE_OR_CATEGORIES,
            essential=[
                "shared_model",
                "condition",
                "chars_ratio",
                "tokens_ratio",
                "usd_ratio",
                "latency_ratio",
            ],
        ),
        Figure(
            "condition_changes",
            "Criteria that changed",
            "Criteria that both sides decided, and whose verdict, or mean over the trials, differs."
            " Points are a criterion's weight times the change.",
            (
                *_COMPARISON,
                Column("label", "Category"),
                Column("n_compared", "compared", group="Criteria"),
                "n_changed",
                "n_gained",
                "points_gained",
                Column("n_lost", "criteria", group="Loss"),
                "points_lost",
                "points_net",
            ),
            essential=[
                "shared_model",
                "condition",
                "n_compared",
                "n_changed",
                "points_gained",
                "points_lost",
                "points_net",
            ],
            boards=BY_LABEL,
            query="conditions/condition_changes",
        ),
        Figure(
            "condition_criteria",
            "Criteria that gain or lose most",
            "For each comparison the ten criteria that gain most points, and the ten that lose"
            " most.",
            (
                "judge_config",
                "shared_model",
                "condition",
                "points",
                "criterion",
                Column("label", "Category"),
                "baseline_value",
                Column("value", "condition", "number", group="Met"),
                "task_id",
            ),
            parameters={"n_criteria": 10},
            listed=side_by_side(
                ("baseline_model", "baseline_config_hash", "vintage"),
                ("model_label", "model_config_hash", "vintage"),
            ),
            essential=["points", "criterion", "label", "task_id"],
            boards=["judge_config", "shared_model", "condition"],
            query="conditions/condition_criteria",
        ),
    ),
    required_table="condition_differences",
)


STOPPING = Page(
    "stopping",
    "Stopping",
    "Comparisons whose evaluation ends when they are settled: the number of tasks they took, and"
    " their results.",
    (
        Figure(
            "stopped_comparisons",
            "Last look at each comparison",
            "Mean $score of the compared model minus that of the model, or of a night minus earlier"
            " nights, on the tasks evaluated by then, in random order. Intervals are valid for all"
            " looks at all comparisons together. A comparison is `different` if its interval"
            " excludes 0, and `equal` if it lies within the least difference; of a night,"
            " `dropped` if it lies below minus the least difference, and `not_dropped` if above."
            " All others are `open`. A difference that ended its own evaluation is too large on"
            " average; the unbiased difference is not.",
            (
                "model",
                "compared_with",
                "judge",
                "decision",
                "difference",
                Interval("ci", "signed", group="Interval at every look"),
                "unbiased_difference",
                Column("n_tasks", "With both", group="Tasks"),
                "n_tasks_evaluated",
                "n_tasks_planned",
                "least_difference",
                "comparison_alpha",
                "looked_at",
            ),
            charts.intervals(
                "judge",
                required="difference",
                value="difference",
                label="comparison",
                zero=True,
            ),
            essential=["model", "compared_with", "decision", "difference", "ci_low"],
            query="stopping/stopped_comparisons",
        ),
    ),
    required_table="stopping_looks",
    has_judge=False,
)
