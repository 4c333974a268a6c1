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
            y="mean_score", x_title="Letters and digits of an answer, mean", y_title="Mean score", low="ci_low",
            high="ci_high",
        )  # fmt: skip

    drawable = [row for row in rows if row["mean_chars_alnum"] is not None and row["mean_score"] is not None]
    return by_split(drawable, draw)


def correlations(rows: Rows) -> list[Plot]:
    """A chart for each split: a bar for each model, to the right where longer answers score higher."""

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.bars(
            picked(of_split, "chars_correlation"), name="model", value="chars_correlation",
            title="Rank correlation of length and score", order=names_in_order(of_split, "model"), domain=(-1, 1),
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
            x="part", y="model", value="difference", title="Difference from its mean", diverging=True,
            marked="is_small", domain=(-most, 0, most), across=_FIFTHS, down=names_in_order(of_split, "model"),
            tips={"mean_value": "Mean score", "n_answers": "Answers", "max_chars_alnum": "Letters and digits up to"},
        )  # fmt: skip

    return by_split(named, draw)


LENGTHS = Page(
    "length-and-cost",
    "Length and cost",
    "Whether longer answers score higher, between models and within each, and what a score costs.",
    (
        Figure(
            "length_score",
            "Score by length",
            "Mean length of a model's answers beside its mean score, with the 95 % interval. Only letters "
            "and digits count, since most answers are full of Markdown. Up and left: more for less.",
            _SCORE,
            score_by_length,
            listed=on_full_splits,
            query="lengths/score",
        ),
        Figure(
            "length_models",
            "Do models that write more score higher?",
            "Spearman's rank correlation of mean length and mean score over the models of one sampling: 1 where the "
            "order by length is the order by score, 0 where one says nothing about the other. Over fewer than 10 "
            "models it is a hint at most and has no interval.",
            (
                *columns("judging split vintage n_chars"),
                *_CORRELATIONS,
            ),
            empty="It takes at least three models of one sampling to compare.",
            is_table=True,
            query="lengths/models",
        ),
        Figure(
            "length_tasks",
            "Does a model's longer answer score higher?",
            "Spearman's rank correlation of length and score over the tasks of one model, which compares a model with "
            "itself. Tasks differ too: a question that takes a long answer may be easier or harder than others. The "
            "table has 95 % intervals; below 10 tasks there is none.",
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
            "Each model's answers in five parts of equal size, from its shortest to its longest: by how much the mean "
            "$score of a part differs from the mean over all of them. Where a line goes from orange to "
            "blue, longer answers score higher. An asterisk marks a part with answers to fewer than 50 tasks.",
            columns(
                "judging split model fifth min_chars_alnum max_chars_alnum mean_value own_mean difference "
                "n_answers n_tasks",
                own_mean="Over all",
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
