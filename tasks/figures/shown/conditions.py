"""The pages of conditions (a model compared with its baseline) and of comparisons that end when they are settled."""

from tasks.figures import charts
from tasks.figures.columns import Column, Kind, columns
from tasks.figures.figure import Figure, Page
from tasks.figures.scope import side_by_side

_TRUST = (
    "The 95 % interval is for other tasks of the same kind, not for another run: one trial does not show how much a "
    "repetition would differ. A difference is significant if its p-value, corrected for all comparisons of this figure "
    "on one split under one judge (Holm), is at most 0.05; the interval is not corrected."
)
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
            charts.intervals("split", value="difference", label="name", zero=True, hollow="is_small"),
            query="condition_differences",
            given={"breakdown": "all"},
        ),
        Figure(
            "condition_categories",
            "Difference by category",
            f"The same over the criteria of one category ($criteria_score: $criteria_formula). {_TRUST}",
            columns(_COMPARISON, "label", _DIFFERENCE, label="Category", mean_score=_OF_CONDITION),
            charts.intervals(
                "split", label="label", value="difference", hollow="is_small", name="name", is_sorted=True, zero=True
            ),
            query="condition_differences",
            breakdown="category",
            given={"breakdown": "category"},
        ),
        Figure(
            "condition_responses",
            "Length, cost and time",
            "Means over the tasks with a usable response on both sides; tokens, cost and seconds only where they are "
            "known on both. The factor is the mean under the condition divided by that under the baseline.",
            (
                *columns(_COMPARISON, "baseline"),
                *_both("mean_chars_alnum", "count", "Letters and digits", "chars_ratio"),
                *_both("mean_completion_tokens", "count", "Tokens", "tokens_ratio"),
                *_both("mean_cost_usd", "price", "Cost of a response", "usd_ratio"),
                *_both("mean_latency_s", "number", "Seconds", "latency_ratio"),
                *_both("n_failed", "count", "Failed"),
                *_both("n_responses", "count", "Responses"),
            ),
            query="condition_differences",
            given={"breakdown": "all"},
        ),
        Figure(
            "condition_changes",
            "Criteria that changed",
            "Criteria that both sides decided, and whose verdict, or mean over the trials, differs. Points are a "
            "criterion's weight times the change.",
            columns(
                _COMPARISON, "label n_compared n_changed n_gained points_gained n_lost points_lost points_net",
                label="Category", n_compared="Criteria: compared", n_lost="Loss: criteria",
            ),
        ),
        Figure(
            "condition_criteria",
            "Criteria that gain or lose most",
            "For each comparison the ten criteria that gain most points, and the ten that lose most.",
            columns(
                "judge_config shared_model condition points criterion label baseline_value value task_id",
                label="Category", value=("number", "Met: condition"),
            ),
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
            "Intervals are valid for all looks at all comparisons together. A comparison is `different` if its "
            "interval excludes 0, and `equal` if it lies within the least difference; of a night, `dropped` if it lies "
            "below minus the least difference, and `not_dropped` if above. All others are `open`. A difference that "
            "ended its own evaluation is too large on average; the unbiased difference is not.",
            columns(
                "model compared_with judge decision difference ci~ unbiased_difference n_tasks n_tasks_evaluated "
                "n_tasks_planned least_difference comparison_alpha looked_at",
                ci="Interval at every look", n_tasks="Tasks: With both",
            ),
            charts.intervals("judge", known="difference", value="difference", label="comparison", zero=True),
        ),
    ),
    needs="stopping_looks",
    has_judge=False,
)  # fmt: skip
