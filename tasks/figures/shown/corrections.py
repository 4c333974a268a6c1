"""What people and a strong judge correct: a cheap judge with a strong one behind it, and scores that labels debias."""

from typing import Any

from tasks.figures import charts
from tasks.figures.charts import Plot, by_split, by_value, on_full_splits
from tasks.figures.columns import Column, Rows, columns, ends, interval
from tasks.figures.figure import Figure, Page, not_computed, score_word

_ENDS = ("agreement_ci_low", "agreement_ci_high")


def cost_against_agreement(rows: Rows) -> list[Plot]:
    """For each pair of judges the rules that no other one beats, cost across and agreement up."""
    return by_value([row for row in rows if row["is_on_front"]], "cascade", _front)


def _front(rows: Rows) -> charts.Chart:
    has_cost = all(row["thousand_usd"] for row in rows)
    named = [
        # Which categories they are is in the table.
        {
            **row,
            "name": row["rule"].partition(" (")[0],
            **{end: row["agreement"] if row[end] is None else row[end] for end in _ENDS},
        }
        for row in rows
    ]
    return charts.scatter(
        named, x="thousand_usd" if has_cost else "strong_calls", y="agreement",
        x_title="USD for 1,000 verdicts" if has_cost else "Calls of the strong judge for 1,000 verdicts",
        y_title="Agreement with the strong judge", name="name", low=_ENDS[0], high=_ENDS[1], usd=has_cost,
    )  # fmt: skip


DECISIONS = Figure(
    "cascade_decisions",
    "Who decided, and why",
    "Verdicts of configured cascades: how many the first judge decided at once, and why the others went to the "
    "second one. A verdict with several reasons counts under each.",
    (*columns("judge reason decided_by n share n_failed cost_usd", judge="Cascade", n="Verdicts"),),
    is_table=True,
    is_optional=True,
    reach="pooled",
)
"""On the page of judges."""

CASCADES = Page(
    "cascades",
    "Cascades",
    "A cheap judge with a strong one behind it (prbench cascade): what it costs to ask the strong one only for some "
    "criteria, and how far the verdicts are still its own.",
    (
        Figure(
            "cascade_rules",
            "Cost against agreement",
            "Rules were made and chosen on one half of the tasks; all figures are of the other half, in the latest "
            "evaluation of each pair of judges. The chart has the rules that no other one beats in both cost and "
            "agreement, the table has all. Lines are 95 % intervals for other tasks of the same kind. Tau compares the "
            "rankings of models: 1 is the same ranking as the strong judge's.",
            (
                *columns("cascade rule"),
                *interval("escalated_share", "Escalated share", "share"),
                *interval("thousand_usd", "USD for 1,000 verdicts", "usd"),
                *columns("strong_calls cheap_calls"),
                *interval("agreement", "Agreement"),
                *interval("kappa", "Kappa"),
                *interval("macro_f1", "Macro-F1"),
                *interval("ranking_tau", "Tau of the ranking"),
                *interval("score_change", "Largest change of a mean score", "signed"),
                *columns("changed_model n_ranked_responses is_on_front is_small n_paired n_tasks"),
            ),
            cost_against_agreement,
            reach="pooled",
        ),
    ),
    has_judging=False,
    needs="cascade_rules",
)


_ESTIMATES = {"judge": "judge's own", "labels_alone": "labels alone", "debiased": "debiased"}
"""What is drawn of each model; the names of the columns begin so."""
_EMPTY = (
    "No verdict of a judge has a label of known probability. prbench export labelling --for leaderboard writes a sheet."
)
_COLUMNS = (
    *columns("judge_score"), *ends("judge_ci", "score", "Judge's own"),
    *interval("labels_alone", "Labels alone", value="Mean"), *interval("debiased", "Debiased", value="Mean"),
    *columns(
        "no_figure judge_power n_labels n_tasks_labelled n_people n_tasks n_unsampled_labels unsampled_mean_error"
    ),
)  # fmt: skip


def beside_each_other(rows: Rows) -> list[Plot]:
    """A chart for each split: for each model a dot with its interval by the judge, by labels alone, and debiased."""
    estimates = [
        {
            "model": row["model"], "judging": row["judging"], "split": row["split"], "is_hard": row["is_hard"],
            "estimate": name, "mean": row["judge_score" if column == "judge" else column],
            "low": row[f"{column}_ci_low"], "high": row[f"{column}_ci_high"],
        }
        for row in rows
        if row["debiased"] is not None
        for column, name in _ESTIMATES.items()
    ]  # fmt: skip
    return by_split(
        estimates, charts.intervals, label="model", value="mean", low="low", high="high", name="estimate",
        names=list(_ESTIMATES.values()), title=f"Mean {score_word(rows[0]['score_name'])}, before clipping",
    )  # fmt: skip


def advice(rows: Rows) -> list[str]:
    """What gives a figure where there is none."""
    without = [row for row in rows if row["no_figure"]]
    label = min((row.get("label") or "" for row in without), default="")
    wanted = f'"{label}"' if label else "leaderboard"
    how = f"`prbench export labelling sheet.csv --for {wanted}` writes a sheet of verdicts to label"
    said = [f"Where there is no figure, more labels give one: {how}."] if without else []
    return [*not_computed("debiased" if "debiased" in rows[0] else "debiased_difference", "no_figure")(rows), *said]


_TRUST = (
    "Labels correct the judge: a label counts by one over its probability of being sampled, and the judge's verdict "
    "stands for what has no label, as far as that narrows the interval (use of the judge: 0 nothing, 1 all). Lines are "
    "95 % intervals for other tasks of the same kind. Means are not clipped here. With fewer than 30 labels, labels in "
    "fewer than 15 tasks, or a few labels that outweigh the others, there is no figure."
)

_SCORES: dict[str, Any] = {
    "relation": "debiased_scores",
    "condition": "breakdown = $breakdown and score_name = if($breakdown = 'all', $score, $label_score)",
    "order": "label nulls first, round(coalesce(debiased, judge_score), 9) desc, model",
    "replaced": "nullif(label, '') as label, "
    "if(no_figure is null and debiased is null, 'not computed yet', no_figure) as no_figure",
    "notes": advice,
}
DIFFERENCES = Figure(
    "debiased_differences",
    "Differences corrected by labels",
    "The difference of the first model from each of the others, before any clipping: by the judge, by labels alone, "
    "and debiased.",
    (
        *columns("judging split first_model second_model"), Column("judge_difference", "Judge's own", "signed"),
        Column("labels_alone_difference", "value", "signed", "Labels alone"),
        *ends("labels_alone_ci", title="Labels alone"),
        Column("debiased_difference", "value", "signed", "Debiased"), *ends("debiased_ci", title="Debiased"),
        *columns("n_labels_first n_labels_second n_tasks no_figure"),
    ),
    given={"first": "", "others": []},
    empty="No two of these models have labels under one judge.",
    notes=advice,
)  # fmt: skip
"""What `prbench diff --debiased` shows."""

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
            **_SCORES,
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
            **_SCORES,
            given={"breakdown": "category"},
        ),
    ),
    needs="debiased_scores",
)  # fmt: skip
