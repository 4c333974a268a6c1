"""Length and cost: whether longer answers score higher, and what a score costs."""

import altair as alt

from tasks.report.content.columns import columns
from tasks.report.content.figures import Figure, Page, Plot, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.plots import by_split, names_in_order, on_full_splits, picked, range_of
from tasks.report.pages.costs import COSTS, JUDGE_COSTS, SPEND, TOKENS

_SCORE = columns(
    "judging split model mean_chars_alnum mean_completion_tokens mean_score ci_low ci_high is_small "
    "n_tasks n_tasks_wanted coverage"
)
_CORRELATIONS = columns(
    "chars_correlation chars_ci_low chars_ci_high tokens_correlation tokens_ci_low tokens_ci_high is_small"
)


def score_by_length(rows: Rows) -> list[Plot]:
    """A chart for each split: a named dot for each model."""

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.scatter(
            picked(of_split, "mean_chars_alnum", "mean_score", "ci_low", "ci_high"), x="mean_chars_alnum",
            y="mean_score", x_title="Mean letters and digits of a response", y_title="Mean score", low="ci_low",
            high="ci_high",
        )  # fmt: skip

    drawable = [row for row in rows if row["mean_chars_alnum"] is not None and row["mean_score"] is not None]
    return by_split(drawable, draw)


def correlations(rows: Rows) -> list[Plot]:
    """A chart for each split: a bar for each model, to the right where longer answers score higher."""

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.bars(
            picked(of_split, "chars_correlation"), name="model", value="chars_correlation",
            title="Rank correlation of length and score", order=names_in_order(of_split, "model"),
        )  # fmt: skip

    return by_split([row for row in rows if row["chars_correlation"] is not None], draw)


_FIFTHS = ("1 shortest", "2", "3", "4", "5 longest")


def by_fifth(rows: Rows) -> list[Plot]:
    """A map for each split: a line for each model, a column for each fifth of its answers."""
    named = [{**row, "part": _FIFTHS[row["fifth"] - 1]} for row in rows]
    most = max((abs(bound) for bound in range_of(on_full_splits(rows), "difference")), default=0.0)

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.heat(
            picked(of_split, "part", "difference", "is_small", "mean_value", "n_answers", "max_chars_alnum"),
            x="part", y="model", value="difference", title="Difference from the model's mean", diverging=True,
            marked="is_small", domain=(-most, 0, most), across=_FIFTHS, down=names_in_order(of_split, "model"),
            tips={"mean_value": "Mean score", "n_answers": "Responses", "max_chars_alnum": "Letters and digits up to"},
        )  # fmt: skip

    return by_split(named, draw)


LENGTHS = Page(
    "length-and-cost",
    "Length and cost",
    "Whether longer responses score higher, between models and within each model, and what a score costs.",
    (
        Figure(
            "length_score",
            "Score by length",
            "Mean length of a model's responses against its mean score, with the 95 % interval. Only letters and "
            "digits count, since many responses are full of Markdown. Up and left is better: higher scores with less "
            "text.",
            _SCORE,
            score_by_length,
            listed=on_full_splits,
            query="lengths/score",
        ),
        Figure(
            "length_models",
            "Do models that write more score higher?",
            "Spearman's rank correlation of mean length and mean score over the models of one vintage: 1 means that "
            "models ordered by length are also ordered by score, 0 that the two are unrelated. With fewer than 10 "
            "models it is only a hint and has no interval.",
            (
                *columns("judging split vintage n_chars"),
                *_CORRELATIONS,
            ),
            empty="This needs at least three models of one vintage.",
            is_table=True,
            query="lengths/models",
        ),
        Figure(
            "length_tasks",
            "Do a model's longer responses score higher?",
            "Spearman's rank correlation of length and score over the tasks of one model, which compares a model with "
            "itself. Tasks differ too: a question that needs a long response may be easier or harder than others. The "
            "table has 95 % intervals, but none for fewer than 10 tasks.",
            (
                *columns("judging split model n_chars", n_chars="Tasks"),
                *_CORRELATIONS,
            ),
            correlations,
            listed=on_full_splits,
            query="lengths/tasks",
        ),
        Figure(
            "length_fifths",
            "Score by length within a model",
            "Each model's responses in five parts of equal size, from shortest to longest: how much the mean $score of "
            "a part differs from the mean of all its responses. In a line that goes from orange to blue, longer "
            "responses score higher. An asterisk marks a part with responses to fewer than 50 tasks.",
            columns(
                "judging split model fifth min_chars_alnum max_chars_alnum mean_value own_mean difference "
                "n_answers n_tasks",
                own_mean="Model's mean",
            ),
            by_fifth,
            listed=on_full_splits,
            query="lengths/fifths",
        ),
        COSTS,
        TOKENS,
        JUDGE_COSTS,
        SPEND,
    ),
)
