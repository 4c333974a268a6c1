"""Figures by severity: how gravely the models err."""

import altair as alt

from tasks.report.content.columns import columns
from tasks.report.content.figures import Figure, Plot, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.dots import dots
from tasks.report.drawing.plots import by_split, names_in_order, on_full_splits, picked

_CRITICAL_COLUMNS = columns(
    "judging split model missed_share missed_ci_low missed_ci_high is_critical_small n_critical "
    "critical_coverage mistake_share mistake_ci_low mistake_ci_high is_mistake_small "
    "n_mistakes_possible mistake_coverage responses_with_mistake_share n_responses_at_risk"
)
_SIDES = (
    ("Critical criteria missed", "missed_share", "missed_ci_low", "missed_ci_high", "is_critical_small"),
    ("Critical mistakes made", "mistake_share", "mistake_ci_low", "mistake_ci_high", "is_mistake_small"),
)
_SEVERITY_COLUMNS = columns(
    "judging split severity model met_share met_ci_low met_ci_high is_met_small n_judged n_tasks "
    "n_tasks_wanted coverage",
    met_share="Met",
)


def gravest(rows: Rows) -> list[Plot]:
    """For each split a chart of what was missed and one of what was done wrong, the best model on top of each."""
    return [plot for side in _SIDES for plot in _side(rows, *side)]


def _side(rows: Rows, what: str, value: str, low: str, high: str, few: str) -> list[Plot]:
    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.intervals(
            picked(of_split, value, low, high, few), value=value, low=low, high=high, title=what, sort=value,
            from_zero=True, percent=True, hollow=few,
        )  # fmt: skip

    return by_split(rows, draw, what)


def by_severity(rows: Rows) -> list[Plot]:
    """For each split a chart of the criteria that are wanted, and one of those that are not."""
    good = [row for row in rows if not row["is_detrimental"]]
    bad = [row for row in rows if row["is_detrimental"]]
    return [*_shares(good, "Criteria met"), *_shares(bad, "Mistakes made")]


def _shares(rows: Rows, what: str) -> list[Plot]:
    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return dots(
            picked(of_split, "severity", "met_share", "met_ci_low", "met_ci_high", "is_met_small"), label="severity",
            value="met_share", low="met_ci_low", high="met_ci_high", title=what, hollow="is_met_small", percent=True,
            labels=names_in_order(of_split, "severity"), from_zero=True,
        )  # fmt: skip

    return by_split(rows, draw, what)


CRITICAL = Figure(
    "critical",
    "Critical criteria missed, critical mistakes made",
    "The share of critically important criteria that the responses miss, and the share of critically detrimental "
    "criteria (mistakes) that they meet, with 95 % intervals over tasks. Less is better; the best model is on top. A "
    "hollow dot is based on few tasks.",
    _CRITICAL_COLUMNS,
    gravest,
    empty="No model has been judged on criteria of the highest severity yet.",
    listed=on_full_splits,
    breakdown="severity",
    query="categories/critical",
)
SEVERITIES = Figure(
    "severities",
    "All severities",
    "The share of criteria met, by severity, with 95 % intervals over tasks; a criterion counts once, whatever its "
    "weight. A detrimental criterion is met if the response makes that mistake, so less is better there. A hollow dot "
    "is based on few tasks.",
    _SEVERITY_COLUMNS,
    by_severity,
    empty="No model has been judged on criteria with a severity yet.",
    listed=on_full_splits,
    breakdown="severity",
    query="categories/severities",
)
