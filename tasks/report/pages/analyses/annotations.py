"""Annotations: the labels that models gave tasks, and how far they agree with released ones and with each other."""

import altair as alt

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Page, Plot, Rows
from tasks.report.drawing.dots import dots
from tasks.report.drawing.plots import names_in_order, picked

_PAIR = (Column("kind", "Kind of label"), Column("annotator", "Annotator"), Column("compared_with", "Compared with"))
_TRUST = (
    "Lines are 95 % intervals for other tasks of the same kind; there is none where fewer than 5 tasks differ. A "
    "hollow dot rests on fewer than 50 tasks. "
    "Agreement with the released labels says how far the annotated ones can be trusted where none are released."
)


def _measures() -> tuple[Column, ...]:
    found: list[Column] = []
    for name in ("precision", "recall", "f1", "jaccard"):
        title = name.capitalize()
        found += [
            Column(name, "value", "score", title),
            Column(f"{name}_ci_low", "from", "score", title),
            Column(f"{name}_ci_high", "to", "score", title),
        ]
    return tuple(found)


_NUMBERS = (
    Column("n_annotated", "by the annotator", "count", "Given"),
    Column("n_compared_with", "by the other", "count", "Given"),
    Column("n_both", "by both", "count", "Given"),
    *columns("n_tasks"),
)


def by_kind(rows: Rows) -> list[Plot]:
    """For each kind of label a chart: under each label or average a dot with its interval for each comparison."""

    def draw(of_kind: Rows) -> alt.TopLevelMixin:
        return dots(
            picked(of_kind, "label", "comparison", "f1", "f1_ci_low", "f1_ci_high", "is_small"),
            label="label", value="f1", low="f1_ci_low", high="f1_ci_high", title="F1", name="comparison",
            hollow="is_small",
            labels=names_in_order(of_kind, "label"), names=names_in_order(rows, "comparison"), domain=(0.0, 1.0),
        )  # fmt: skip

    return [Plot(kind, draw([row for row in rows if row["kind"] == kind])) for kind in names_in_order(rows, "kind")]


ANNOTATIONS = Page(
    "annotations",
    "Annotations",
    "The labels that models gave tasks (prbench annotate), and how far they agree with released labels and with each "
    "other.",
    (
        Figure(
            "annotators",
            "Annotators",
            "How many tasks each annotator labelled. Breakdowns use the annotators' labels for tasks to which the data "
            "set gives none of the kind.",
            (
                Column("kind", "Kind of label"),
                Column("annotator", "Annotator"),
                *columns("n_tasks"),
                Column("n_annotations", "Annotations", "count"),
                Column("n_failed", "Failed", "count"),
                Column("n_released", "with released labels", "count", "Tasks"),
                Column("n_used", "with annotated labels", "count", "Tasks"),
                *columns("cost_usd"),
            ),
            empty="No task has been labelled by a model yet.",
            is_table=True,
            reach="pooled",
            query="annotations/annotators",
        ),
        Figure(
            "annotation_agreement",
            "Agreement on average",
            "F1 of the annotator's labels beside the released ones, or beside another annotator's. The micro average "
            f"pools all labels, the macro average is the mean over labels. {_TRUST}",
            (*_PAIR, Column("label", "Average"), *_measures(), *_NUMBERS),
            by_kind,
            empty="No task has labels of two sources yet.",
            reach="pooled",
            query="annotations/agreement",
            given={"is_average": True},
        ),
        Figure(
            "annotation_labels",
            "Agreement on each label",
            f"The same for each label. {_TRUST}",
            (*_PAIR, Column("label", "Label"), *_measures(), *_NUMBERS),
            by_kind,
            empty="No task has labels of two sources yet.",
            reach="pooled",
            query="annotations/agreement",
            given={"is_average": False},
        ),
    ),
    has_judging=False,
    needs="task_annotations",
)
