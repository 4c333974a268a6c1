"""The pages of conditions (a model compared with its baseline) and of comparisons that end when they are settled."""

from collections.abc import Iterator
from typing import Any

from tasks.figures import charts
from tasks.figures.charts import on_full_splits
from tasks.figures.columns import Column, Kind, Rows, columns
from tasks.figures.figure import Figure, Page, score_word
from tasks.figures.scope import side_by_side
from tasks.rules.statistics.intervals import FEWEST_OTHERS

_TRUST = (
    "The 95 % interval is for other tasks of the same kind, not for another run: one trial does not show how much a "
    "repetition would differ. A difference is significant if its p-value, corrected for all comparisons of this figure "
    "on one split under one judge (Holm), is at most 0.05; the interval is not corrected. The smallest detectable "
    "difference is what one comparison finds with a power of 80 %. A hollow dot marks fewer than 50 tasks, or fewer "
    "than 10 that differ: its interval may be too narrow."
)
_EMPTY = (
    "No condition and its baseline have been judged here by the same judge in the same vintage. `conditions` in the "
    "configuration says which labels are one model."
)
_OF_PAIRS: dict[str, Any] = {"empty": _EMPTY, "listed": on_full_splits, "query": "condition_differences"}
_COMPARISON = "judge_config split shared_model condition"
_DIFFERENCE = (
    "difference is_small ci~ baseline no_interval p_value p_holm n_comparisons is_significant smallest_detectable "
    "baseline_mean_score mean_score n_tasks n_tasks_wanted n_trials"
)
_OF_CONDITION = "Mean score: condition"


def _both(name: str, kind: Kind, title: str, ratio: str = "") -> tuple[Column, ...]:
    """Return the columns of a value under the baseline and under the condition, and of the ratio of the two."""
    pair = (Column(f"baseline_{name}", "baseline", kind, title), Column(name, "condition", kind, title))
    return (*pair, Column(ratio, "factor", "number", title)) if ratio else pair


def _axis(rows: Rows) -> str:
    return f"Difference ({score_word(rows[0]['score_name'])})"


def on_differences(rows: Rows) -> Iterator[str]:
    """Yield notes on intervals and tests."""
    if any(row["n_tasks"] and row["p_value"] is None for row in rows):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if any((row[name] or 0.0) < 0 for row in rows for name in ("baseline_mean_score", "mean_score")):
        yield "Means are before any clipping; the leaderboard may show a mean below 0 as 0."
    if any(row["p_value"] is not None for row in rows):
        yield (
            "Intervals, p and smallest detectable differences (power 80 %) are for each comparison alone. The "
            "corrected p (Holm) takes all comparisons over the whole rubric with the same split, judge and vintage "
            "into account; for categories, all comparisons by category of all models and conditions."
        )
    if any(1 in {row["n_trials"], row["baseline_n_trials"]} for row in rows):
        yield (
            "One trial: intervals and tests are for other tasks of the same kind, not for another run on the same "
            "tasks; `trials` above 1 averages over runs."
        )


def on_responses(rows: Rows) -> Iterator[str]:
    """Yield notes on length, cost and failures."""
    if any(row["n_unpriced"] or row["baseline_n_unpriced"] for row in rows):
        is_known = any(row["mean_cost_usd"] is not None for row in rows)
        left_out = "Tasks with a response of unknown price are left out of both mean costs."
        yield left_out if is_known else "No cost is shown: no task has known prices on both sides."
    if any(row["n_failed"] or row["baseline_n_failed"] for row in rows):
        yield "A failed response has no score: its trial counts for neither side's mean, and is counted as failed."


CONDITIONS = Page(
    "conditions",
    "Conditions",
    "The effect of tools, effort or a system prompt: each model under several conditions, compared with its baseline.",
    (
        Figure(
            "conditions",
            "Difference from the baseline",
            "Mean $score under a condition minus that under the baseline, on the tasks with a complete trial on both "
            f"sides, before any clipping. To the right the condition is better. {_TRUST}",
            columns(_COMPARISON, _DIFFERENCE, mean_score=_OF_CONDITION),
            charts.intervals("split", value="difference", label="name", title=_axis, zero=True, hollow="is_small"),
            **_OF_PAIRS,
            given={"breakdown": "all"},
            notes=lambda rows: [*on_differences(rows)],
        ),
        Figure(
            "condition_categories",
            "Difference by category",
            "The same over the criteria of one category ($criteria_score: $criteria_formula). "
            f"{_TRUST}",
            columns(_COMPARISON, "label", _DIFFERENCE, label="Category", mean_score=_OF_CONDITION),
            charts.intervals(
                "split", label="label", value="difference", title=_axis, hollow="is_small", name="name",
                is_sorted=True, zero=True,
            ),
            **_OF_PAIRS,
            breakdown="category",
            given={"breakdown": "category"},
            notes=lambda rows: [*on_differences(rows)],
        ),
        Figure(
            "condition_responses",
            "Length, cost and time",
            "Means of a response over the tasks with a usable response on both sides; tokens, cost and seconds only "
            "where they are known on both. The factor is the mean under the condition divided by that under the "
            "baseline.",
            (
                *columns(_COMPARISON, "baseline"),
                *_both("mean_chars_alnum", "count", "Letters and digits", "chars_ratio"),
                *_both("mean_completion_tokens", "count", "Tokens", "tokens_ratio"),
                *_both("mean_cost_usd", "price", "Cost of a response", "usd_ratio"),
                *_both("mean_latency_s", "number", "Seconds", "latency_ratio"),
                *_both("n_failed", "count", "Failed"),
                *_both("n_responses", "count", "Responses"),
            ),
            **_OF_PAIRS,
            given={"breakdown": "all"},
            notes=lambda rows: [*on_responses(rows)],
        ),
        Figure(
            "condition_changes",
            "Criteria that changed",
            "Criteria that both sides decided, and whose verdict, or mean over the trials, differs. A criterion gains "
            "points if its change raises the score: one with a positive weight that is now met, or one with a "
            "negative weight that is no longer met. Points are its weight times the change.",
            columns(
                _COMPARISON, "label n_compared n_changed n_gained points_gained n_lost points_lost points_net",
                label="Category", n_compared="Criteria: compared", n_lost="Loss: criteria",
            ),
            listed=on_full_splits,
        ),
        Figure(
            "condition_criteria",
            "Criteria that gain or lose most",
            "For each comparison the ten criteria that gain most points, and the ten that lose most. A task's link "
            "shows both responses side by side at the criterion.",
            columns(
                "judge_config shared_model condition points criterion label baseline_value value task_id",
                label="Category", value=("number", "Met: condition"),
            ),
            empty="No criterion changed.",
            given={"n_criteria": 10},
            listed=side_by_side(
                ("baseline_model", "baseline_config_hash", "vintage"), ("model_label", "model_config_hash", "vintage")
            ),
        ),
    ),
    needs="condition_differences",
)  # fmt: skip


STOPPING = Page(
    "stopping",
    "Stopping",
    "Comparisons whose evaluation ends when they are settled: the number of tasks they took, and their results.",
    (
        Figure(
            "stopped_comparisons",
            "Last look at each comparison",
            "Mean $score of the first model minus that of the other, on the tasks evaluated by then, in random order. "
            "Intervals are valid for all looks at all comparisons together, with the configured chance of any false "
            "decision. A comparison is `different` if its interval excludes 0, and `equal` if the interval lies "
            "within the least difference; of a night, `dropped` if it lies below minus the least difference, and "
            "`not_dropped` if above. All others are `open`. A difference that ended its own evaluation is too large on "
            "average; the unbiased difference is not.",
            columns(
                "model compared_with judge decision difference ci~ unbiased_difference n_tasks n_tasks_evaluated "
                "n_tasks_planned least_difference comparison_alpha looked_at",
                ci="Interval at every look", n_tasks="Tasks: With both",
            ),
            charts.intervals(
                "judge", known="difference", value="difference", label="comparison", title="Difference", zero=True
            ),
            is_table=True,
        ),
    ),
    needs="stopping_looks",
    has_judge=False,
)  # fmt: skip
