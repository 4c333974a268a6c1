"""The page of length and cost: scores by length of responses and by cost; an unknown price is never
shown as 0.
"""

from tasks.figures import charts
from tasks.figures.figure import Column, ColumnGroup, Figure, Interval, Rows, on_full_splits
from tasks.figures.page import Page
from tasks.figures.shown.leaderboard import WHOLE

_UNKNOWN = "An unknown price is left out, not counted as 0."


def _parts(rows: Rows) -> Rows:
    """Return the mean costs of a response and of judging it."""
    parts = []
    for row in rows:
        parts.append({**row, "part": "response", "usd": row["response_usd"]})
        parts.append({**row, "part": "judging", "usd": row["verdicts_usd"]})
    return parts


COSTS = Figure(
    "costs",
    "Score by cost",
    "Cost of one response, on a logarithmic axis, against the mean score; and the cost of judging."
    f" {_UNKNOWN}",
    (
        "judge_config",
        "split",
        "model",
        "mean_score",
        Interval("ci"),
        "coverage",
        "response_usd",
        "verdicts_usd",
        "task_usd",
        "n_responses",
        "n_unpriced_responses",
        "all_responses_usd",
    ),
    (
        charts.scatter(
            "split",
            "Score",
            only=lambda row: row["response_usd"],
            required="mean_score",
            x="response_usd",
            y="mean_score",
            usd=True,
        ),
        charts.bars(
            "split",
            "Cost",
            rows=_parts,
            required="task_usd",  # the sum, which is unknown if one of the two is
            name="model",
            value="usd",
            title="US dollars per task",
            colour="part",
        ),
    ),
    essential=[
        "model",
        "mean_score",
        "ci_low",
        "coverage",
        "response_usd",
        "verdicts_usd",
        "task_usd",
    ],
    query="costs/costs",
)
TOKENS = Figure(
    "response_tokens",
    "Tokens per response",
    "Mean tokens of a response as the provider reported them, thinking included.",
    (
        "split",
        "model",
        "prompt_tokens",
        "cached_share",
        "completion_tokens",
        "reasoning_tokens",
        "mean_chars_alnum",
        "latency_s",
        "n_responses",
        "n_failed",
    ),
    charts.bars("split", required="completion_tokens", name="model", value="completion_tokens"),
    essential=[
        "model",
        "prompt_tokens",
        "completion_tokens",
        "reasoning_tokens",
        "latency_s",
        "n_responses",
        "n_failed",
    ],
    query="costs/response_tokens",
)
JUDGE_COSTS = Figure(
    "judge_costs",
    "Cost of judging",
    f"Each judge's verdicts on the responses of this report. {_UNKNOWN}",
    (
        "judged_by",
        "n_verdicts",
        "n_failed",
        "n_responses",
        "attempts",
        ColumnGroup("Tokens of a verdict", ["prompt_tokens", "cached_share", "completion_tokens"]),
        ColumnGroup("Cost", ["thousand_usd", Column("cost_usd", "All"), "n_unpriced"]),
    ),
    (
        charts.bars(
            subject="1,000 verdicts",
            required="thousand_usd",
            name="judged_by",
            value="thousand_usd",
        ),
        charts.bars(
            subject="Cached prompts",
            required="cached_share",
            name="judged_by",
            value="cached_share",
        ),
    ),
    essential=["judged_by", "n_verdicts", "n_failed", "attempts", "thousand_usd", "cost_usd"],
    query="costs/judge_costs",
)
SPEND = Figure(
    "spend",
    "Cost of all calls",
    "Every call of every run in this warehouse, with discarded attempts, without calls of unknown"
    " price.",
    (
        "purpose",
        "called_model",
        "calls",
        "failed_calls",
        "prompt_tokens",
        "cached_share",
        "completion_tokens",
        "cost_usd",
        "unpriced_calls",
        "n_runs",
        "first_day",
        "last_day",
    ),
    charts.bars(
        only=lambda row: row["cost_usd"],
        name="called_model",
        value="cost_usd",
        colour="purpose",
    ),
    reach="warehouse",
    essential=["purpose", "called_model", "calls", "failed_calls", "cost_usd", "unpriced_calls"],
    query="costs/spend",
)


_SCORE = (
    "judge_config",
    "split",
    "model",
    "mean_chars_alnum",
    "mean_completion_tokens",
    Column("mean_score", few="is_small"),
    Interval("ci"),
    "n_tasks",
    "n_tasks_wanted",
    "coverage",
)
_CORRELATIONS = ("length_in", Column("rank_correlation", few="is_small"), Interval("ci", "signed"))
LENGTHS_AND_SCORES = Figure(
    "length_correlations",
    "Rank correlation between response length and score",
    "Spearman's rank correlation of length and score, of each model over its tasks, and over the"
    " models.",
    ("judge_config", "split", "model", *_CORRELATIONS, Column("n", "Tasks or models"), "vintage"),
    parameters={"level": None},
    choices={"level": ["models", "tasks"]},
    listed=lambda rows: rows,
    boards=["judge_config", "split", "vintage"],
    query="length_correlations",
)
"""The figure of `prbench lengths`: both correlations in one table."""


LENGTHS = Page(
    "length-and-cost",
    "Length and cost",
    "Length and score, between models and within each model, and the cost of a score.",
    (
        Figure(
            "length_score",
            "Score by length",
            "Mean length of a model's responses against its mean score. Only letters and digits"
            " count, since many responses are full of Markdown.",
            _SCORE,
            query="leaderboard",
            parameters=WHOLE,
            charts=charts.scatter(
                "split",
                required="mean_score",
                x="mean_chars_alnum",
                y="mean_score",
            ),
            listed=lambda rows: on_full_splits([row for row in rows if row["is_judged"]]),
            essential=["model", "mean_chars_alnum", "mean_score", "ci_low", "n_tasks", "coverage"],
        ),
        Figure(
            "length_models",
            "Do models that write more score higher?",
            "Spearman's rank correlation of mean length and mean score over the models of one"
            " vintage; fewer than 10 models have no interval.",
            ("judge_config", "split", "vintage", *_CORRELATIONS, Column("n", "Models")),
            query="length_correlations",
            parameters={"level": "models"},
            choices={"level": ["models"]},
        ),
        Figure(
            "length_tasks",
            "Do a model's longer responses score higher?",
            "Spearman's rank correlation of length and score over the tasks of one model. Tasks"
            " differ: one that needs a long response may be easier or harder than others.",
            ("judge_config", "split", "model", *_CORRELATIONS, Column("n", "Tasks")),
            charts.bars(
                "split",
                only=lambda row: row["measure"] == "chars_alnum",
                required="rank_correlation",
                name="model",
                value="rank_correlation",
            ),
            query="length_correlations",
            parameters={"level": "tasks"},
            choices={"level": ["tasks"]},
        ),
        Figure(
            "length_fifths",
            "Score by length within a model",
            "Each model's responses in five parts of equal size, the shortest first: the mean"
            " $score of a part minus the mean of all its responses.",
            (
                "judge_config",
                "split",
                "model",
                "fifth",
                "min_chars_alnum",
                "max_chars_alnum",
                "mean_value",
                Column("own_mean", "Model's mean"),
                "difference",
                "n_responses",
                "n_tasks",
            ),
            charts.heat(
                "split",
                x="fifth",
                y="model",
                value="difference",
                diverging=True,
                marked="is_small",
                across=True,
                tips=["mean_value", "n_responses", "max_chars_alnum"],
            ),
            mark_note="An asterisk marks a part with responses to fewer than 50 tasks.",
            essential=["model", "fifth", "mean_value", "difference", "n_responses", "n_tasks"],
            query="lengths/length_fifths",
        ),
        COSTS,
        TOKENS,
        JUDGE_COSTS,
        SPEND,
    ),
)
