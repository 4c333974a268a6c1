"""The page of length and cost: scores by length of responses and by cost; an unknown price is never shown as 0."""

from typing import Any

from tasks.figures import charts
from tasks.figures.charts import on_full_splits
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page
from tasks.figures.shown.overview import WHOLE
from tasks.rules.text.numbers import some

_UNKNOWN = "An unknown price is left out, not counted as 0."


def _parts(rows: Rows) -> list[dict[str, Any]]:
    """Return the mean costs of a response and of judging it, without models for which one of the two is unknown."""
    return [
        {**row, "part": part, "usd": row[column]}
        for row in rows
        if row["task_usd"] is not None
        for part, column in (("response", "response_usd"), ("judging", "verdicts_usd"))
    ]


def missing_prices(rows: Rows) -> list[str]:
    """Return notes on models missing from the charts of cost, and on mean costs that leave out some responses."""
    known = {row["model"] for row in rows if row["response_usd"] is not None}
    unknown = [row["model"] for row in rows if row["model"] not in known]
    free = [row["model"] for row in rows if row["response_usd"] == 0]
    partly = [row for row in rows if row["response_usd"] is not None and row["n_unpriced_responses"]]
    notes = [f"Not in these charts, because their price is unknown: {some(unknown, 8)}."] if unknown else []
    if free:
        why = "because they are free and a logarithmic axis has no 0"
        notes.append(f"Not in the chart of score and cost, {why}: {some(free, 8)}.")
    return notes + [
        f"The cost of {model} is the mean over the responses of known cost; the cost of some is unknown."
        for model in dict.fromkeys(row["model"] for row in partly)
    ]


def unpriced(rows: Rows) -> list[str]:
    """Return a note that names the models and judges with calls of unknown cost."""
    names = [row["called_model"] for row in rows if row["unpriced_calls"]]
    return [f"Calls of unknown cost are not in the sums: some or all calls of {some(names, 8)}."] if names else []


COSTS = Figure(
    "costs",
    "Score by cost",
    "Cost of one response, on a logarithmic axis, against the mean score with its 95 % interval: up and left is "
    f"better. Below it, the cost of judging is added. {_UNKNOWN}",
    columns(
        "judge_config split model mean_score ci_low ci_high coverage response_usd verdicts_usd task_usd n_responses "
        "n_unpriced_responses all_responses_usd"
    ),
    (
        charts.scatter(
            "split", "Score", rows=lambda rows: [row for row in rows if row["response_usd"]], known="mean_score",
            x="response_usd", y="mean_score", x_title="US dollars per response, log scale", y_title="Mean score",
            usd=True,
        ),
        charts.bars(
            "split", "One response and its judging", rows=_parts, name="model", value="usd",
            title="US dollars per task", colour="part",
        ),
    ),
    listed=on_full_splits,
    notes=missing_prices,
)  # fmt: skip
TOKENS = Figure(
    "response_tokens",
    "Tokens per response",
    "Mean tokens of a response as the provider reported them, thinking included. The table also has prompt tokens, "
    "length and time.",
    columns(
        "split model", "Tokens: prompt_tokens cached_share completion_tokens reasoning_tokens",
        "mean_chars_alnum latency_s n_responses n_failed",
    ),
    charts.bars(
        "split", known="completion_tokens", name="model", value="completion_tokens", title="Mean tokens of a response"
    ),
    listed=on_full_splits,
)  # fmt: skip
JUDGE_COSTS = Figure(
    "judge_costs",
    "Cost of judging",
    "For each judge, the verdicts on the responses of this report: cost, tokens, and the share of prompt tokens that "
    f"came from the provider's cache, which is cheaper. {_UNKNOWN}",
    columns(
        "judged_by n_verdicts n_failed n_responses attempts",
        "Tokens of a verdict: prompt_tokens cached_share completion_tokens",
        "Cost: thousand_usd cost_usd n_unpriced", cost_usd="All",
    ),
    (
        charts.bars(what="1,000 verdicts", known="thousand_usd", name="judged_by", value="thousand_usd",
                    title="US dollars"),
        charts.bars(what="Prompts from the provider's cache", known="cached_share", name="judged_by",
                    value="cached_share", title="Share of the prompt tokens", percent=True),
    ),
    empty="No verdict was made by a call; imported verdicts have no cost.",
    is_table=True,
)  # fmt: skip
SPEND = Figure(
    "spend",
    "Cost of all calls",
    "Every call of every run in this warehouse, by model and purpose. It includes other data sets and discarded "
    "attempts.",
    columns(
        "purpose called_model calls failed_calls", "Tokens: prompt_tokens cached_share completion_tokens",
        "cost_usd unpriced_calls n_runs first_day last_day",
    ),
    charts.bars(
        rows=lambda rows: [row for row in rows if row["cost_usd"]], name="called_model", value="cost_usd",
        title="US dollars", colour="purpose",
    ),
    notes=unpriced,
    reach="warehouse",
)  # fmt: skip


_SCORE = columns(
    "judge_config split model mean_chars_alnum mean_completion_tokens mean_score is_small ci_low ci_high "
    "n_tasks n_tasks_wanted coverage"
)
_CORRELATIONS = "length_in rank_correlation is_small ci~"
LENGTHS_AND_SCORES = Figure(
    "length_correlations",
    "Rank correlation between response length and score",
    "Spearman's rank correlation of length and score, of each model over its tasks, and over the models.",
    columns("judge_config split model", _CORRELATIONS, "n vintage", n="Tasks or models"),
    given={"level": None},
)
"""The figure of `prbench lengths`: both correlations in one table."""


_FIFTHS = ("1 shortest", "2", "3", "4", "5 longest")


def _in_fifths(rows: Rows) -> list[dict[str, Any]]:
    return [{**row, "part": _FIFTHS[row["fifth"] - 1]} for row in rows]


LENGTHS = Page(
    "length-and-cost",
    "Length and cost",
    "Length and score, between models and within each model, and the cost of a score.",
    (
        Figure(
            "length_score",
            "Score by length",
            "Mean length of a model's responses against its mean score, with the 95 % interval. Only letters and "
            "digits count, since many responses are full of Markdown. Up and left is better: higher scores with less "
            "text.",
            _SCORE,
            query="leaderboard",
            given=WHOLE,
            charts=charts.scatter(
                "split", known="mean_score", x="mean_chars_alnum", y="mean_score",
                x_title="Mean letters and digits of a response", y_title="Mean score",
            ),
            listed=lambda rows: on_full_splits([row for row in rows if row["is_judged"]]),
        ),
        Figure(
            "length_models",
            "Do models that write more score higher?",
            "Spearman's rank correlation of mean length and mean score over the models of one vintage: 1 means that "
            "models ordered by length are also ordered by score, 0 that the two are unrelated. With fewer than 10 "
            "models it is only a hint and has no interval.",
            columns("judge_config split vintage", _CORRELATIONS, "n", n="Models"),
            empty="This needs at least three models of one vintage.",
            query="length_correlations",
            given={"level": "models"},
        ),
        Figure(
            "length_tasks",
            "Do a model's longer responses score higher?",
            "Spearman's rank correlation of length and score over the tasks of one model. Tasks differ: one that "
            "needs a long response may be easier or harder than others. The table has 95 % intervals, but none for "
            "fewer than 10 tasks.",
            columns("judge_config split model", _CORRELATIONS, "n", n="Tasks"),
            charts.bars(
                "split", rows=lambda rows: [row for row in rows if row["measure"] == "chars_alnum"],
                known="rank_correlation", name="model", value="rank_correlation",
                title="Rank correlation of length and score",
            ),
            listed=on_full_splits,
            query="length_correlations",
            given={"level": "tasks"},
        ),
        Figure(
            "length_fifths",
            "Score by length within a model",
            "Each model's responses in five parts of equal size, from shortest to longest: the mean $score of a part "
            "minus the mean of all its responses. If a line goes from orange to blue, longer responses score higher. "
            "An asterisk marks a part with responses to fewer than 50 tasks.",
            columns(
                "judge_config split model fifth min_chars_alnum max_chars_alnum mean_value own_mean difference "
                "n_responses n_tasks",
                own_mean="Model's mean",
            ),
            charts.heat(
                "split", rows=_in_fifths, x="part", y="model", value="difference",
                title="Difference from the model's mean", diverging=True, marked="is_small",
                across=_FIFTHS, tips={
                    "mean_value": "Mean score", "n_responses": "Responses",
                    "max_chars_alnum": "Letters and digits up to",
                },
            ),
            listed=on_full_splits,
        ),
        COSTS,
        TOKENS,
        JUDGE_COSTS,
        SPEND,
    ),
)  # fmt: skip
