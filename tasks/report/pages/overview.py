"""The overview: who leads, how surely, and what one should know before one quotes it."""

from functools import partial
from typing import Any

from tasks.report.content.addresses import task_address
from tasks.report.content.columns import Column, columns
from tasks.report.content.edition import Edition
from tasks.report.content.figures import Figure, Page, Plot, Row, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.plots import by_value
from tasks.rules.text.numbers import counted

_LEADERBOARD = (
    *columns(
        "judging split rank model mean_score ci_low ci_high raw_mean_score raw_ci_low raw_ci_high "
        "rank_low rank_high mean_lower mean_upper n_tasks n_tasks_full n_tasks_wanted n_tasks_ranked coverage n_trials "
        "met_share mean_chars_alnum answers_usd",
        mean_chars_alnum="Characters",
    ),
    Column("judging_usd", "judging", "usd", "Cost"),
)


_CHANGES = (
    *columns("judging model split difference"),
    Column("ci_low", "from", "signed", "95 % interval"),
    Column("ci_high", "to", "signed", "95 % interval"),
    *columns("p_adjusted is_significant earlier later earlier_mean later_mean n_tasks"),
)


def changed(rows: Rows) -> list[Plot]:
    """The differences with their intervals, a chart for each split."""
    draw = partial(charts.intervals, value="difference", title="Difference", zero=True)
    return by_value(rows, "split", draw)


_CHANGED_TASKS = columns("judging model task_id difference topic earlier later earlier_score later_score")


def side_by_side(rows: Rows) -> list[dict[str, Any]]:
    """The rows with the address of a page that sets the answers of then and now side by side."""
    return [
        dict(row) | {"address": task_address(row["task_id"], _sampling(row, "earlier"), _sampling(row, "later"))}
        for row in rows
    ]


def _sampling(row: Row, which: str) -> dict[str, Any]:
    return {"model": row["model_label"], "model_config_hash": row["model_config_hash"], "vintage": row[which]}


def facts(edition: Edition) -> list[tuple[str, str, str]]:
    """The size of it: (what, how much, a note beside it)."""
    (row,) = edition.rows("overview/facts")
    usd = (row["responses_usd"] or 0) + (row["verdicts_usd"] or 0)
    is_priced = row["responses_usd"] is not None or row["verdicts_usd"] is not None
    judges = {judging["judge"] for judging in edition.judgings}
    ways = f"in {len(edition.judgings):,} ways" if len(edition.judgings) > len(judges) else ""
    unpriced = row["n_responses_unpriced"] + row["n_verdicts_unpriced"]
    return [
        ("Tasks", f"{row['n_tasks']:,}", counted(row["n_criteria"] or 0, "criterion", "criteria")),
        ("Models", f"{len(edition.entries):,}", ""),
        ("Judges", f"{len(judges):,}", ways),
        ("Responses", f"{row['n_responses']:,}", f"{row['n_responses_failed']:,} failed"),
        ("Verdicts", f"{row['n_verdicts']:,}", f"{row['n_failed']:,} failed"),
        ("Cost", f"${usd:,.2f}" if is_priced else "unknown", f"{unpriced:,} of unknown price" if unpriced else ""),
    ]


OVERVIEW = Page(
    "index",
    "Overview",
    "Which model scores best, how certain that is, and what the scores are based on.",
    (
        Figure(
            "leaderboard",
            "Leaderboard",
            "Mean $score on each split, with its 95 % interval for other tasks of the same kind. A task's score is the "
            "mean over its complete trials. Ranks compare models on the tasks for which every ranked model has a "
            "complete trial, before a mean below 0 is clipped. Possible ranks are those that the intervals allow; a "
            "model is tied with the leader if it could be first. `prbench diff` compares two models task by task, "
            "which can find a difference between models that are tied here. A model without a score has no verdicts by "
            "the judge. The $score of a response is $formula: $explained",
            _LEADERBOARD,
            query="overview/leaderboard",
        ),
        Figure(
            "changes",
            "What changed",
            "Each model's latest vintage (or the one that this report shows) compared with its previous comparable "
            "one, by the same judge, on the tasks with a complete trial in both. A difference is significant if its "
            "p-value, corrected for all rows (Holm), is at most 0.05; the interval is not corrected.",
            _CHANGES,
            changed,
            empty="No model has two vintages to compare. That takes two vintages that the same judge decided in the "
            "same way, with tasks that have a complete trial in both.",
            is_table=True,
            query="overview/changes",
        ),
        Figure(
            "changed_tasks",
            "Where it changed",
            "The tasks behind each significant change: for each model the ten that changed most in the same direction. "
            "A task's link shows the earlier and the latest responses side by side, with flipped verdicts marked.",
            _CHANGED_TASKS,
            empty="There is no significant change.",
            is_table=True,
            listed=side_by_side,
            query="overview/changed_tasks",
        ),
    ),
    template="index.html",
)
