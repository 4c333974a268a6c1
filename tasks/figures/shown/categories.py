"""The page of categories: strengths and weaknesses of models by criteria and tasks, and severe mistakes."""

from tasks.figures import charts
from tasks.figures.charts import Chart, Charts, names_in_order, on_full_splits
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Breakdown, Figure, Page, score_word

_SIDES = (
    ("Critical criteria missed", "missed", "is_critical_small"),
    ("Critical mistakes made", "mistake", "is_mistake_small"),
)


def _met(what: str, *, is_detrimental: bool) -> Charts:
    """Declare charts of the share of criteria that are met, for each split: of desired or of undesired criteria."""
    return charts.intervals(
        "split", what, rows=lambda rows: [row for row in rows if row["is_detrimental"] is is_detrimental],
        label="severity", name="model", value="met_share", ends="met_ci", title=what, hollow="is_met_small",
        percent=True, from_zero=True,
    )  # fmt: skip


CRITICAL = Figure(
    "critical",
    "Critical criteria missed, critical mistakes made",
    "The share of critically important criteria that the responses miss, and the share of critically detrimental "
    "criteria (mistakes) that they meet, with 95 % intervals over tasks. Less is better; the best model is on top. A "
    "hollow dot is based on few tasks.",
    columns(
        "judge_config split model missed_share is_critical_small missed_ci_low missed_ci_high n_critical "
        "critical_coverage mistake_share is_mistake_small mistake_ci_low mistake_ci_high n_mistakes_possible "
        "mistake_coverage responses_with_mistake_share n_responses_at_risk"
    ),
    tuple(
        charts.intervals(
            "split", what, value=f"{side}_share", ends=f"{side}_ci", title=what, from_zero=True, percent=True,
            hollow=few,
        )
        for what, side, few in _SIDES
    ),
    listed=on_full_splits,
    breakdown="severity",
)  # fmt: skip
SEVERITIES = Figure(
    "severities",
    "All severities",
    "The share of criteria met, by severity, with 95 % intervals over tasks; a criterion counts once, whatever its "
    "weight. A detrimental criterion is met if the response makes that mistake, so less is better there. A hollow dot "
    "is based on few tasks.",
    columns(
        "judge_config split severity model met_share is_met_small met_ci_low met_ci_high n_judged n_tasks "
        "n_tasks_wanted coverage",
        met_share="Met",
    ),
    (_met("Criteria met", is_detrimental=False), _met("Mistakes made", is_detrimental=True)),
    listed=on_full_splits,
    breakdown="severity",
)


_FEW = (
    "A hollow dot or an asterisk marks a mean on fewer than 50 tasks, or with fewer than 10 that differ from the most "
    "common value: its interval (in the table) may cover less than 95 %."
)
_MOST_DOTS = 8
"""Largest number of labels that are drawn as dots with intervals; more are drawn as a map."""


def _mean(rows: Rows) -> str:
    """Return the title of an axis of mean scores, with the score's name."""
    return f"Mean {score_word(rows[0]['score_name'])}"


def _map(what: str = "") -> Charts:
    """Declare a map for each split: a line for each label, a column for each model."""
    return charts.heat(
        "split", what, x="model", y="label", value="mean_score", title=_mean, marked="is_small",
        tips={"ci_low": "from", "ci_high": "to", "n_tasks": "Tasks"},
    )  # fmt: skip


_DOTS = charts.intervals("split", label="label", name="model", title=_mean, hollow="is_small")
"""Under each label a dot with its interval for each model."""


def _fitting(rows: Rows) -> list[Chart]:
    """Return dots with intervals if there are few labels, else a map."""
    return (_DOTS if len(names_in_order(rows, "label")) <= _MOST_DOTS else _map())(rows)


def _breakdown(breakdown: Breakdown, name: str, label: str, says: str, *drawn: Charts) -> Figure:
    """Return a figure of the tasks or criteria under each label of a breakdown.

    Its table lists what the charts show.
    """
    shown = columns(
        "judge_config split label rank model mean_score is_small ci_low ci_high hidden_mean_score hidden_ci_low "
        "hidden_ci_high n_tasks n_tasks_wanted coverage",
        label=label,
    )
    return Figure(
        name, breakdown.title, says, shown, drawn, query="leaderboard", listed=on_full_splits,
        breakdown=breakdown.kind, given={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
    )  # fmt: skip


def own_breakdown(breakdown: Breakdown) -> Figure:
    """Return the breakdown by a kind of label that only this benchmark has."""
    what = (
        "Mean $criteria_score ($criteria_formula) over the criteria with each label"
        if breakdown.of_criteria
        else "Mean $score on the tasks with each label"
    )
    says = f"{what}, the easiest first; a task or criterion with several labels counts under each. {_FEW}"
    return _breakdown(breakdown, f"breakdown_{breakdown.kind}", breakdown.title, says, _fitting)


FAILURES = Figure(
    "failures",
    "Failures",
    "A criterion with a positive weight fails if it is not met at all, one with a negative weight if it is fully met; "
    "each counts once, whatever its weight. The first map shows the share of a category's decided criteria that fail; "
    "the second shows each category's share of all failures of the model, which adds up to 100 %. Less is better; the "
    "category that fails most often comes first.",
    columns(
        "judge_config split label model failure_rate failure_share", "Criteria: n_failed n_decided", label="Category"
    ),
    tuple(
        charts.heat(
            "split", what, x="model", y="label", value=value, title=what, percent=True, least=(0, 0),
            tips={"n_failed": "Failed", "n_decided": "Decided"},
        )
        for value, what in (("failure_rate", "Failure rate"), ("failure_share", "Share of all failures"))
    ),
    listed=on_full_splits,
    breakdown="category",
)  # fmt: skip


_OF_TASKS = (
    ("topic", "topics", "Topics", "Topic", _map(),
     "Mean $score on the tasks of each topic, the easiest topic first."),
    ("decision_type", "decision_types", "Decision types", "Decision type", _map(),
     "Mean $score by the kind of decision that the task asks about; a task with several labels counts under each."),
    ("economic_pathway", "economic_pathways", "Economic pathways", "Economic pathway", _map(),
     "Mean $score by the economic consequence of the decision; a task with several labels counts under each."),
    ("expert", "experts", "Who asks", "Who asks", _DOTS,
     "Mean $score on questions asked by experts and by laypeople, with 95 % intervals."),
    ("turns", "turns", "Length of the conversation", "User turns", _map(),
     "Mean $score by the number of user turns; only the last response is judged."),
    ("reference_texts", "reference_texts", "Reference texts", "Reference texts", _DOTS,
     "Mean $score on tasks with and without reference texts."),
)  # fmt: skip
"""The breakdowns by labels of tasks: the kind, the figure's name and title, the heading of the labels, the charts, and
the explanation."""


CATEGORIES = Page(
    "categories",
    "Categories",
    "Where the models are strong and weak: by category of the criteria, by severity, and by kind of task.",
    (
        _breakdown(
            Breakdown("category", "Rubric categories", of_criteria=True), "categories", "Category",
            "Mean $criteria_score of a response ($criteria_formula) over the criteria of one category, with the 95 % "
            f"interval for other tasks of the same kind. The easiest category comes first. {_FEW}",
            _DOTS, _map("As a map"),
        ),
        FAILURES,
        CRITICAL,
        SEVERITIES,
        *(
            _breakdown(Breakdown(kind, title, of_criteria=False), name, label, f"{says} {_FEW}", drawn)
            for kind, name, title, label, drawn, says in _OF_TASKS
        ),
    ),
    n_chosen=6,
    own=own_breakdown,
)  # fmt: skip
