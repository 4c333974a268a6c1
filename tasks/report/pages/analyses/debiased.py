"""Debiased scores: what people's labels on a part of the verdicts make of a judge's scores."""

from typing import Any

import altair as alt

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Page, Plot, Rows
from tasks.report.content.wording import score_word
from tasks.report.drawing.dots import dots
from tasks.report.drawing.plots import by_split, names_in_order, on_full_splits

_ESTIMATES = {"judge": "judge's own", "labels_alone": "labels alone", "debiased": "debiased"}
"""What is drawn of each model; the names of the columns begin so."""
_EMPTY = (
    "No verdict of a judge has a label of known probability. prbench export labelling --for leaderboard writes a sheet."
)
_COLUMNS = (
    Column("judge_score", "Mean", "score", "Judge's own"),
    Column("judge_ci_low", "from", "score", "Judge's own"),
    Column("judge_ci_high", "to", "score", "Judge's own"),
    Column("labels_alone", "Mean", "score", "Labels alone"),
    Column("labels_alone_ci_low", "from", "score", "Labels alone"),
    Column("labels_alone_ci_high", "to", "score", "Labels alone"),
    Column("debiased", "Mean", "score", "Debiased"),
    Column("debiased_ci_low", "from", "score", "Debiased"),
    Column("debiased_ci_high", "to", "score", "Debiased"),
    Column("no_figure", "No figure, because"),
    Column("judge_power", "Use of the judge", "number"),
    Column("n_labels", "Number", "count", "Labels"),
    Column("n_tasks_labelled", "in tasks", "count", "Labels"),
    Column("n_people", "by people", "count", "Labels"),
    *columns("n_tasks"),
    Column("n_unsampled_labels", "Number", "count", "Labels not used"),
    Column("unsampled_mean_error", "Label minus judge", "signed", "Labels not used"),
)


def beside_each_other(rows: Rows) -> list[Plot]:
    """A chart for each split: for each model a dot with its interval by the judge, by labels alone, and debiased."""

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return dots(
            _estimates(of_split), label="model", value="mean", low="low", high="high", name="estimate",
            names=list(_ESTIMATES.values()), labels=names_in_order(of_split, "model"), hollow="is_few",
            title=f"Mean {score_word(rows[0]['score_name'])}, before clipping",
        )  # fmt: skip

    return by_split([row for row in rows if row["debiased"] is not None], draw)


def _estimates(rows: Rows) -> list[dict[str, Any]]:
    """A row for each dot."""
    return [
        {
            "model": row["model"], "judging": row["judging"], "estimate": name, "is_few": False,
            "mean": row["judge_score" if column == "judge" else column],
            "low": row[f"{column}_ci_low"], "high": row[f"{column}_ci_high"],
        }
        for row in rows
        for column, name in _ESTIMATES.items()
    ]  # fmt: skip


_TRUST = (
    "Labels correct the judge: a label counts by one over its probability of being sampled, and the judge's verdict "
    "stands for what has no label, as far as that narrows the interval (use of the judge: 0 nothing, 1 all). Lines are "
    "95 % intervals for other tasks of the same kind. Means are not clipped here. With fewer than 30 labels, labels in "
    "fewer than 15 tasks, or a few labels that outweigh the others, there is no figure."
)

DEBIASED = Page(
    "debiased",
    "Debiased scores",
    "What people's labels on a part of the verdicts make of a judge's scores: the judge's own score, what the labels "
    "alone give, and the judge's score corrected by the labels.",
    (
        Figure(
            "debiased_scores",
            "Scores corrected by labels",
            f"Mean $score of each model. {_TRUST}",
            (*columns("judging split model"), *_COLUMNS),
            beside_each_other,
            empty=_EMPTY,
            listed=on_full_splits,
            query="debiased/scores",
            given={"breakdown": "all"},
        ),
        Figure(
            "debiased_categories",
            "Categories",
            f"The same over the criteria of one category ($criteria_score: $criteria_formula). {_TRUST}",
            (*columns("judging split model"), *columns("label", label="Category"), *_COLUMNS),
            is_table=True,
            empty=_EMPTY,
            listed=on_full_splits,
            breakdown="category",
            query="debiased/scores",
            given={"breakdown": "category"},
        ),
    ),
    needs="debiased_scores",
)  # fmt: skip
