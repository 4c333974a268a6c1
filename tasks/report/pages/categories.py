"""Categories: where in the rubrics and on which tasks the models are strong and weak, and how gravely they err."""

from collections.abc import Callable

import altair as alt

from tasks.report.drawing import charts
from tasks.report.drawing.dots import dots
from tasks.report.drawing.panels import by_split, names_in_order, on_full_splits, picked, range_of
from tasks.report.figures import Column, Figure, Page, Panel, Rows
from tasks.report.pages.severities import CRITICAL, SEVERITIES

_SMALL = (
    "An asterisk marks a mean on fewer than 50 tasks, or with fewer than 10 that differ from the commonest value, "
    "whose interval (in the table) is not promised to cover 95 %."
)
_HOLLOW = (
    "A dot that is not filled rests on fewer than 50 tasks, or on fewer than 10 that differ from the commonest value: "
    "its interval is not promised to cover 95 %."
)


def _columns(label: str) -> tuple[Column, ...]:
    return (
        Column("judging", "Judge"),
        Column("split", "Split"),
        Column("label", label),
        Column("rank", "Rank", "count"),
        Column("model", "Model"),
        Column("mean_score", "Score", "score"),
        Column("ci_low", "from", "score", "95 % interval"),
        Column("ci_high", "to", "score", "95 % interval"),
        Column("is_small", "Few", "yes"),
        Column("n_tasks", "Tasks", "count"),
        Column("n_tasks_wanted", "Wanted", "count"),
        Column("coverage", "Coverage", "share"),
    )


Draw = Callable[[Rows], list[Panel]]
_DRAWN = ("label", "mean_score", "ci_low", "ci_high", "is_small")


def as_dots(rows: Rows, title: str = "Mean score") -> list[Panel]:
    """A chart for each split: under each label a dot with its interval for each model."""

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return dots(
            picked(of_split, *_DRAWN), label="label", value="mean_score", low="ci_low", high="ci_high",
            title=title, labels=names_in_order(of_split, "label"), hollow="is_small",
        )  # fmt: skip

    return by_split(rows, draw)


def as_heat(rows: Rows, what: str = "") -> list[Panel]:
    """A map for each split: a line for each label, a column for each model."""
    domain = range_of(on_full_splits(rows), "mean_score")

    def draw(of_split: Rows) -> alt.TopLevelMixin:
        return charts.heat(
            picked(of_split, *_DRAWN, "n_tasks"), x="model", y="label", value="mean_score", title="Mean score",
            domain=domain, down=names_in_order(of_split, "label"), marked="is_small",
            tips={"ci_low": "from", "ci_high": "to", "n_tasks": "Tasks"},
        )  # fmt: skip

    return by_split(rows, draw, what)


def as_both(rows: Rows) -> list[Panel]:
    """Dots with their intervals, and the same as a map."""
    return [*as_dots(rows, "Mean min-normalised score"), *as_heat(rows, "As a map")]


def by_turns(rows: Rows) -> list[Panel]:
    """A map with a line for each number of user turns."""
    return as_heat([{**row, "label": f"{row['label']} turn{'s' if row['label'] != '1' else ''}"} for row in rows])


def by_references(rows: Rows) -> list[Panel]:
    """Dots for tasks with and without reference texts."""
    return as_dots([{**row, "label": f"{row['label']} reference texts"} for row in rows])


def _cut(name: str, cut: str, title: str, label: str, panels: Draw, says: str) -> Figure:
    """A figure of the tasks under each label of a cut; its table lists what the charts show."""
    return Figure(
        name, title, says, _columns(label), panels, query="cuts", given={"cut": cut}, listed=on_full_splits,
        empty="No model has been judged on tasks with such a label yet.",
    )  # fmt: skip


CATEGORIES = Page(
    "categories",
    "Categories",
    "Where the models are strong and weak: by what the criteria ask for, how grave they are, and the kind of task.",
    (
        _cut(
            "categories", "category", "Rubric categories", "Category", as_both,
            "Mean min-normalised score (equation 4) over the criteria of one category, with the 95 % interval for "
            "other tasks of the same kind (figure 6 of the paper): 0 is the worst that the rubrics allow, 1 the best. "
            f"The category that is easiest for these models comes first. {_HOLLOW}",
        ),
        CRITICAL,
        SEVERITIES,
        _cut(
            "topics", "topic", "Topics", "Topic", as_heat,
            f"Mean score (equation 2) on the tasks of each topic, the easiest topic first. {_SMALL}",
        ),
        _cut(
            "decision_types", "decision_type", "Decision types", "Decision type", as_heat,
            "Mean score (equation 2) by the kind of decision that the task asks about; a task with several labels "
            f"counts under each. {_SMALL}",
        ),
        _cut(
            "economic_pathways", "economic_pathway", "Economic pathways", "Economic pathway", as_heat,
            "Mean score (equation 2) by the economic consequence of the decision; a task with several labels counts "
            f"under each. {_SMALL}",
        ),
        _cut(
            "experts", "expert", "Who asks", "Who asks", as_dots,
            f"Mean score (equation 2) on questions put by experts and by laypeople, with 95 % intervals. {_HOLLOW}",
        ),
        _cut(
            "turns", "turns", "Length of the conversation", "User turns", by_turns,
            f"Mean score (equation 2) by the number of user turns; only the last answer is judged. {_SMALL}",
        ),
        _cut(
            "reference_texts", "reference_texts", "Reference texts", "Reference texts", by_references,
            f"Mean score (equation 2) on tasks that come with reference texts and on those without. {_HOLLOW}",
        ),
    ),
    n_chosen=6,
)  # fmt: skip
