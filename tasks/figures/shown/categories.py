"""The page of categories: strengths and weaknesses of models by criteria and tasks, and severe mistakes."""

from tasks.figures import charts
from tasks.figures.charts import Chart, Charts, names_in_order
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Breakdown, Figure, Page


def _met(what: str, *, is_detrimental: bool) -> Charts:
    """Declare charts of the share of criteria that are met, for each split: of desired or of undesired criteria."""
    return charts.intervals(
        "split", what, rows=lambda rows: [row for row in rows if row["is_detrimental"] is is_detrimental],
        label="severity", name="model", value="met_share", ends="met_ci", hollow="is_met_small", from_zero=True,
    )  # fmt: skip


CRITICAL = Figure(
    "critical",
    "Critical criteria missed, critical mistakes made",
    "The share of critically important criteria that the responses miss, and of critically detrimental criteria "
    "(mistakes) that they meet, with 95 % intervals over tasks. Less is better.",
    columns(
        "judge_config split model missed_share is_critical_small missed_ci_low missed_ci_high n_critical "
        "critical_coverage mistake_share is_mistake_small mistake_ci_low mistake_ci_high n_mistakes_possible "
        "mistake_coverage responses_with_mistake_share n_responses_at_risk"
    ),
    tuple(
        charts.intervals("split", what, value=f"{side}_share", ends=f"{side}_ci", from_zero=True, hollow=few)
        for what, side, few in (
            ("Critical criteria missed", "missed", "is_critical_small"),
            ("Critical mistakes made", "mistake", "is_mistake_small"),
        )
    ),
    breakdown="severity",
)  # fmt: skip
SEVERITIES = Figure(
    "severities",
    "All severities",
    "The share of criteria met, by severity, with 95 % intervals over tasks; each criterion counts once. A detrimental "
    "criterion is met if the response makes that mistake, so less is better there.",
    columns(
        "judge_config split severity model met_share is_met_small met_ci_low met_ci_high n_judged n_tasks "
        "n_tasks_wanted coverage",
        met_share="Met",
    ),
    (_met("Criteria met", is_detrimental=False), _met("Mistakes made", is_detrimental=True)),
    breakdown="severity",
)


_MOST_DOTS = 12
"""Largest number of labels that are drawn as dots with intervals; more are drawn as a map."""

_MAP = charts.heat("split", x="model", y="label", value="mean_score", marked="is_small", tips="ci_low ci_high n_tasks")
"""A line for each label, a column for each model."""
_DOTS = charts.intervals("split", label="label", name="model", hollow="is_small")
"""Under each label a dot with its interval for each model."""


def _fitting(rows: Rows) -> list[Chart]:
    """Return dots with intervals if there are few labels, else a map."""
    return (_DOTS if len(names_in_order(rows, "label")) <= _MOST_DOTS else _MAP)(rows)


def own_breakdown(breakdown: Breakdown, name: str = "", label: str = "") -> Figure:
    """Return a figure of the tasks or criteria under each label of a breakdown."""
    what = (
        "Mean $criteria_score ($criteria_formula) over the criteria with each label"
        if breakdown.of_criteria
        else "Mean $score on the tasks with each label"
    )
    return Figure(
        name or f"breakdown_{breakdown.kind}",
        breakdown.title,
        f"{what}, the easiest first; a task or criterion with several labels counts under each. A hollow dot or an "
        "asterisk marks a mean on fewer than 50 tasks, or with fewer than 10 that differ from the most common value: "
        "its interval may cover less than 95 %.",
        columns(
            "judge_config split label rank model mean_score is_small ci_low ci_high hidden_mean_score hidden_ci_low "
            "hidden_ci_high n_tasks n_tasks_wanted coverage",
            label=label or breakdown.title,
        ),
        _fitting,
        query="leaderboard",
        breakdown=breakdown.kind,
        given={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
    )


FAILURES = Figure(
    "failures",
    "Failures",
    "A criterion with a positive weight fails if it is not met at all, one with a negative weight if it is fully met. "
    "The first map shows the share of a category's decided criteria that fail, the second each category's share of all "
    "failures of the model.",
    columns(
        "judge_config split label model failure_rate failure_share", "Criteria: n_failed n_decided", label="Category"
    ),
    tuple(
        charts.heat("split", what, x="model", y="label", value=value, least=(0, 0), tips="n_failed n_decided")
        for value, what in (("failure_rate", "Failure rate"), ("failure_share", "Share of all failures"))
    ),
    breakdown="category",
)  # fmt: skip


_OF_TASKS = (
    (Breakdown("topic", "Topics"), "topics", "Topic"),
    (Breakdown("decision_type", "Decision types"), "decision_types", "Decision type"),
    (Breakdown("economic_pathway", "Economic pathways"), "economic_pathways", "Economic pathway"),
    (Breakdown("expert", "Who asks"), "experts"),
    (Breakdown("turns", "Length of the conversation"), "turns", "User turns"),
    (Breakdown("reference_texts", "Reference texts"), "reference_texts"),
)
"""The breakdowns by labels of tasks: the kind, the figure's name, the heading of the labels."""


CATEGORIES = Page(
    "categories",
    "Categories",
    "Where the models are strong and weak: by category of the criteria, by severity, and by kind of task.",
    (
        own_breakdown(Breakdown("category", "Rubric categories", of_criteria=True), "categories", "Category"),
        FAILURES,
        CRITICAL,
        SEVERITIES,
        *(own_breakdown(*each) for each in _OF_TASKS),
    ),
    n_chosen=6,
    own=own_breakdown,
)  # fmt: skip
