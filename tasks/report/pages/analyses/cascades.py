"""Cascades: what asking a strong judge only for some criteria costs, and how far its verdicts are kept."""

from tasks.report.content.columns import Column, Kind, columns
from tasks.report.content.figures import Figure, Page, Plot, Rows
from tasks.report.drawing.charts import scatter
from tasks.report.drawing.plots import names_in_order, picked

_ENDS = ("agreement_ci_low", "agreement_ci_high")


def _interval(name: str, title: str, kind: Kind = "score") -> tuple[Column, ...]:
    return (
        Column(name, "value", kind, title),
        Column(f"{name}_ci_low", "from", kind, title),
        Column(f"{name}_ci_high", "to", kind, title),
    )


def cost_against_agreement(rows: Rows) -> list[Plot]:
    """For each pair of judges the rules that no other one beats, cost across and agreement up."""

    def draw(of_pair: Rows) -> Plot:
        has_cost = all(row["thousand_usd"] for row in of_pair)
        across = "thousand_usd" if has_cost else "strong_calls"
        title = "USD for 1,000 verdicts" if has_cost else "Calls of the strong judge for 1,000 verdicts"
        named = [
            # Which categories they are is in the table.
            {
                **row,
                "name": row["rule"].partition(" (")[0],
                **{end: row["agreement"] if row[end] is None else row[end] for end in _ENDS},
            }
            for row in of_pair
        ]
        return Plot(of_pair[0]["cascade"], scatter(
            picked(named, "name", across, "agreement", *_ENDS), x=across, y="agreement", x_title=title,
            y_title="Agreement with the strong judge", name="name", low=_ENDS[0], high=_ENDS[1], usd=has_cost,
        ))  # fmt: skip

    shown = [row for row in rows if row["is_on_front"]]
    return [
        draw([row for row in shown if row["cascade"] == cascade]) for cascade in names_in_order(shown, "cascade")
    ]  # fmt: skip


DECISIONS = Figure(
    "cascade_decisions",
    "Who decided, and why",
    "Verdicts of configured cascades: how many the first judge decided at once, and why the others went to the "
    "second one. A verdict with several reasons counts under each.",
    (
        Column("judge", "Cascade"),
        Column("reason", "Reason"),
        Column("decided_by", "Decided by"),
        Column("n", "Verdicts", "count"),
        Column("share", "Share", "share"),
        Column("n_failed", "Failed", "count"),
        *columns("cost_usd"),
    ),
    empty="No verdict of a configured cascade is stored yet.",
    is_table=True,
    is_optional=True,
    reach="pooled",
    query="cascades/decided",
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
                Column("cascade", "Judges"),
                Column("rule", "Escalated"),
                *_interval("escalated_share", "Escalated share", "share"),
                *_interval("thousand_usd", "USD for 1,000 verdicts", "usd"),
                Column("strong_calls", "of the strong judge", "number", "Calls for 1,000 verdicts"),
                Column("cheap_calls", "of the cheap judge", "number", "Calls for 1,000 verdicts"),
                *_interval("agreement", "Agreement"),
                *_interval("kappa", "Kappa"),
                *_interval("macro_f1", "Macro-F1"),
                *_interval("ranking_tau", "Tau of the ranking"),
                *_interval("score_change", "Largest change of a mean score", "signed"),
                Column("changed_model", "of", "text", "Largest change of a mean score"),
                Column("n_ranked_responses", "Responses", "count", "Ranking rests on"),
                Column("is_on_front", "No rule beats it", "yes"),
                *columns("is_small"),
                Column("n_paired", "Criteria", "count"),
                *columns("n_tasks"),
            ),
            cost_against_agreement,
            empty="No cascade has been evaluated yet.",
            reach="pooled",
            query="cascades/rules",
        ),
    ),
    has_judging=False,
    needs="cascade_rules",
)
