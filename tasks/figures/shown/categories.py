"""The page of categories: strengths and weaknesses of models by criteria and tasks, and severe mistakes."""

from collections.abc import Callable

from tasks.figures import charts
from tasks.figures.charts import Plot, by_split, names_in_order, on_full_splits, range_of
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Breakdown, Figure, Page, score_word

_CRITICAL_COLUMNS = columns(
    "judge_config split model missed_share is_critical_small missed_ci_low missed_ci_high n_critical "
    "critical_coverage mistake_share is_mistake_small mistake_ci_low mistake_ci_high "
    "n_mistakes_possible mistake_coverage responses_with_mistake_share n_responses_at_risk"
)
_SIDES = (
    ("Critical criteria missed", "missed_share", "missed_ci_low", "missed_ci_high", "is_critical_small"),
    ("Critical mistakes made", "mistake_share", "mistake_ci_low", "mistake_ci_high", "is_mistake_small"),
)
_SEVERITY_COLUMNS = columns(
    "judge_config split severity model met_share is_met_small met_ci_low met_ci_high n_judged n_tasks "
    "n_tasks_wanted coverage",
    met_share="Met",
)


def gravest(rows: Rows) -> list[Plot]:
    """Return, for each split, a chart of misses and one of mistakes, the best model on top."""
    return [
        plot
        for what, value, low, high, few in _SIDES
        for plot in by_split(
            rows, charts.intervals, what, value=value, low=low, high=high, title=what, from_zero=True, percent=True,
            hollow=few,
        )
    ]  # fmt: skip


def by_severity(rows: Rows) -> list[Plot]:
    """Return, for each split, a chart of desired criteria and one of undesired ones."""
    good = [row for row in rows if not row["is_detrimental"]]
    bad = [row for row in rows if row["is_detrimental"]]
    return [*_shares(good, "Criteria met"), *_shares(bad, "Mistakes made")]


def _shares(rows: Rows, what: str) -> list[Plot]:
    return by_split(
        rows, charts.intervals, what, label="severity", name="model", value="met_share", low="met_ci_low",
        high="met_ci_high", title=what, hollow="is_met_small", percent=True, from_zero=True,
    )  # fmt: skip


CRITICAL = Figure(
    "critical",
    "Critical criteria missed, critical mistakes made",
    "The share of critically important criteria that the responses miss, and the share of critically detrimental "
    "criteria (mistakes) that they meet, with 95 % intervals over tasks. Less is better; the best model is on top. A "
    "hollow dot is based on few tasks.",
    _CRITICAL_COLUMNS,
    gravest,
    listed=on_full_splits,
    breakdown="severity",
)
SEVERITIES = Figure(
    "severities",
    "All severities",
    "The share of criteria met, by severity, with 95 % intervals over tasks; a criterion counts once, whatever its "
    "weight. A detrimental criterion is met if the response makes that mistake, so less is better there. A hollow dot "
    "is based on few tasks.",
    _SEVERITY_COLUMNS,
    by_severity,
    listed=on_full_splits,
    breakdown="severity",
)


_FEW = (
    "A hollow dot or an asterisk marks a mean on fewer than 50 tasks, or with fewer than 10 that differ from the most "
    "common value: its interval (in the table) may cover less than 95 %."
)
_MOST_DOTS = 8
"""Largest number of labels that are drawn as dots with intervals; more are drawn as a map."""
Draw = Callable[[Rows], list[Plot]]


def _mean(rows: Rows) -> str:
    """Return the title of an axis of mean scores, with the score's name."""
    return f"Mean {score_word(rows[0]['score_name'])}"


def as_dots(rows: Rows) -> list[Plot]:
    """Return a chart for each split: under each label a dot with its interval for each model."""
    return by_split(rows, charts.intervals, label="label", name="model", title=_mean(rows), hollow="is_small")


def as_heat(rows: Rows, what: str = "") -> list[Plot]:
    """Return a map for each split: a line for each label, a column for each model."""
    return by_split(
        rows, charts.heat, what, x="model", y="label", value="mean_score", title=_mean(rows), marked="is_small",
        domain=range_of(on_full_splits(rows), "mean_score"),
        tips={"ci_low": "from", "ci_high": "to", "n_tasks": "Tasks"},
    )  # fmt: skip


def as_both(rows: Rows) -> list[Plot]:
    """Return dots with their intervals, and the same as a map."""
    return [*as_dots(rows), *as_heat(rows, "As a map")]


def as_fits(rows: Rows) -> list[Plot]:
    """Return dots with their intervals for few labels, a map for many."""
    return as_dots(rows) if len(names_in_order(rows, "label")) <= _MOST_DOTS else as_heat(rows)


def by_turns(rows: Rows) -> list[Plot]:
    """Return a map with a line for each number of user turns."""
    return as_heat([{**row, "label": f"{row['label']} turn{'s' if row['label'] != '1' else ''}"} for row in rows])


def by_references(rows: Rows) -> list[Plot]:
    """Return dots for tasks with and without reference texts."""
    return as_dots([{**row, "label": f"{row['label']} reference texts"} for row in rows])


def failing(rows: Rows) -> list[Plot]:
    """Return, for each split, a map of each category's failed share, and one of the categories' shares of failures."""
    rates = (("failure_rate", "Failure rate"), ("failure_share", "Share of all failures"))
    return [
        plot
        for value, what in rates
        for plot in by_split(
            rows, charts.heat, what, x="model", y="label", value=value, title=what, percent=True,
            domain=(0.0, range_of(on_full_splits(rows), value)[1]),
            tips={"n_failed": "Failed", "n_decided": "Decided"},
        )
    ]  # fmt: skip


def _breakdown(breakdown: Breakdown, name: str, label: str, plots: Draw, says: str) -> Figure:
    """Return a figure of the tasks or criteria under each label of a breakdown.

    Its table lists what the charts show.
    """
    shown = columns(
        "judge_config split label rank model mean_score is_small ci_low ci_high hidden_mean_score hidden_ci_low "
        "hidden_ci_high n_tasks n_tasks_wanted coverage",
        label=label,
    )
    return Figure(
        name, breakdown.title, says, shown, plots, query="leaderboard", listed=on_full_splits,
        breakdown=breakdown.kind, given={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
    )  # fmt: skip


def own_breakdown(breakdown: Breakdown) -> Figure:
    """Return the figure of a kind of label that only the benchmark has."""
    what = (
        "Mean $criteria_score ($criteria_formula) over the criteria with each label"
        if breakdown.of_criteria
        else "Mean $score on the tasks with each label"
    )
    says = f"{what}, the easiest first; a task or criterion with several labels counts under each. {_FEW}"
    return _breakdown(breakdown, f"breakdown_{breakdown.kind}", breakdown.title, as_fits, says)


FAILURES = Figure(
    "failures",
    "Failures",
    "A criterion with a positive weight fails if it is not met at all, one with a negative weight if it is fully met; "
    "each counts once, whatever its weight. The first map shows the share of a category's decided criteria that fail; "
    "the second shows each category's share of all failures of the model, which adds up to 100 %. Less is better; the "
    "category that fails most often comes first.",
    (
        *columns("judge_config split label model failure_rate failure_share", label="Category"),
        *columns("n_failed n_decided", "Criteria"),
    ),
    failing,
    listed=on_full_splits,
    breakdown="category",
)


CATEGORIES = Page(
    "categories",
    "Categories",
    "Where the models are strong and weak: by category of the criteria, by severity, and by kind of task.",
    (
        _breakdown(
            Breakdown("category", "Rubric categories", of_criteria=True), "categories", "Category", as_both,
            "Mean $criteria_score of a response ($criteria_formula) over the criteria of one category, with the 95 % "
            f"interval for other tasks of the same kind. The easiest category comes first. {_FEW}",
        ),
        FAILURES,
        CRITICAL,
        SEVERITIES,
        _breakdown(
            Breakdown("topic", "Topics", of_criteria=False), "topics", "Topic", as_heat,
            f"Mean $score on the tasks of each topic, the easiest topic first. {_FEW}",
        ),
        _breakdown(
            Breakdown("decision_type", "Decision types", of_criteria=False), "decision_types", "Decision type", as_heat,
            "Mean $score by the kind of decision that the task asks about; a task with several labels counts under "
            f"each. {_FEW}",
        ),
        _breakdown(
            Breakdown("economic_pathway", "Economic pathways", of_criteria=False), "economic_pathways",
            "Economic pathway", as_heat,
            "Mean $score by the economic consequence of the decision; a task with several labels counts under "
            f"each. {_FEW}",
        ),
        _breakdown(
            Breakdown("expert", "Who asks", of_criteria=False), "experts", "Who asks", as_dots,
            f"Mean $score on questions asked by experts and by laypeople, with 95 % intervals. {_FEW}",
        ),
        _breakdown(
            Breakdown("turns", "Length of the conversation", of_criteria=False), "turns", "User turns", by_turns,
            f"Mean $score by the number of user turns; only the last response is judged. {_FEW}",
        ),
        _breakdown(
            Breakdown("reference_texts", "Reference texts", of_criteria=False), "reference_texts", "Reference texts",
            by_references, f"Mean $score on tasks with and without reference texts. {_FEW}",
        ),
    ),
    n_chosen=6,
    own=own_breakdown,
)  # fmt: skip
