"""The pages of data: tasks, rubrics, weights and results of checks; labels of tasks; reviews of
criteria.
"""

from dataclasses import replace
from datetime import UTC

from tasks.figures import charts
from tasks.figures.figure import Column, ColumnGroup, Figure, Interval, Rows, pooled
from tasks.figures.page import Breakdown, Page
from tasks.rules.text.numbers import counted


def _check_summary(rows: Rows) -> list[str]:
    """Return sentences on the outcome of the checks and the times of the suites."""
    n_failed = sum(row["outcome"] == "failed" for row in rows)
    checks = counted(len(rows), "check")
    summary = f"All {checks} passed."
    if n_failed:
        summary = f"{n_failed} of {checks} failed; they come first."
    times = {row["suite"]: row["created_at"].astimezone(UTC) for row in rows}
    suites = [f"{suite} {time:%Y-%m-%d %H:%M} UTC" for suite, time in times.items()]
    return [summary, f"Checked: {', '.join(suites)}."]


QUALITY = Figure(
    "quality",
    "Data quality",
    "Every check of the last run of each suite. Its policy applies if it fails: quarantine refuses"
    " the task, warn only reports it, fail stops the run.",
    (
        "outcome",
        "policy",
        "check_name",
        "meaning",
        "table_name",
        ColumnGroup("Rows", ["n_evaluated", "n_failed"]),
        "some_keys",
        "n_more",
        "suite",
    ),
    empty="No check has been run yet; `prbench check` runs them.",
    notes=_check_summary,
    reach="warehouse",
    essential=["outcome", "policy", "check_name", "n_evaluated", "n_failed", "meaning"],
    query="quality/quality",
)
REFUSALS = Figure(
    "refusals",
    "Refused tasks",
    "Tasks that failed a check with the policy quarantine or fail. They are not sampled and have no"
    " scores.",
    ("check_name", Column("task_id", "Task", "text"), "splits", "policy", "detail"),
    listed=lambda rows: rows[:200],  # further rows usually have the same cause
    essential=["check_name", "task_id", "policy", "detail"],
    query="quality/refusals",
)


_NUMBERS_AS_LABELS = {"n_criteria", "weight"}
"""Breakdowns by a number that is no kind of label in the data (`Figure.breakdown`)."""


def label_distribution(breakdown: Breakdown, name: str = "", label: str = "") -> Figure:
    """Return the distribution of tasks or criteria over labels: a chart for each split, all on one
    scale.

    `name` is the figure's, `label` the heading of the labels; empty for the usual ones.
    """
    noun = "criteria" if breakdown.of_criteria else "tasks"
    heading = label or breakdown.title
    return Figure(
        name or f"labels_{breakdown.kind}",
        breakdown.title,
        f"The share of each split's {noun} with each label; those with several labels count under"
        " each.",
        ("split", Column("label", heading), f"n_{noun}", "share"),
        charts.bars(
            "split",
            name="label",
            value="share",
            name_title=heading,
            is_upright=breakdown.kind in {"turns", *_NUMBERS_AS_LABELS},
        ),
        query="data/label_counts",
        parameters={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
        breakdown="" if breakdown.kind in _NUMBERS_AS_LABELS else breakdown.kind,
    )


DATA = Page(
    "data",
    "Data",
    "Tasks, rubrics, weights, and failed checks of the data. Refused tasks are counted too.",
    (
        Figure(
            "splits",
            "Splits",
            "Tasks and criteria of each split. A hard split is a part of its full split, so never"
            " add up the two.",
            (
                "split",
                ColumnGroup(
                    "Tasks",
                    [
                        Column("n_tasks", "All"),
                        "n_refused",
                        "expert_share",
                        "multi_turn_share",
                        "with_negative_share",
                        "n_with_references",
                    ],
                ),
                Column("n_criteria", "All", group="Criteria"),
                "criteria_min",
                "criteria_25",
                "criteria_50",
                "criteria_75",
                "criteria_max",
                "turns_min",
                "turns_25",
                "turns_50",
                "turns_75",
                "turns_max",
            ),
            essential=["split", "n_tasks", "n_refused", "n_criteria", "criteria_50", "turns_50"],
            boards=[],  # one table, not one for each split
            query="data/splits",
        ),
        QUALITY,
        REFUSALS,
        label_distribution(Breakdown("topic", "Topics"), "task_topics", "Topic"),
        label_distribution(
            Breakdown("decision_type", "Decision types"), "task_decision_types", "Decision type"
        ),
        label_distribution(
            Breakdown("economic_pathway", "Economic pathways"),
            "task_economic_pathways",
            "Economic pathway",
        ),
        label_distribution(Breakdown("expert", "Who asks"), "task_experts"),
        label_distribution(Breakdown("turns", "User turns"), "task_turns"),
        label_distribution(
            Breakdown("n_criteria", "Criteria per task"), "task_criteria", "Criteria"
        ),
        label_distribution(Breakdown("weight", "Weights", of_criteria=True), "weights", "Weight"),
        label_distribution(
            Breakdown("severity", "Severities", of_criteria=True),
            "criterion_severities",
            "Severity",
        ),
        label_distribution(
            Breakdown("category", "Rubric categories", of_criteria=True),
            "criterion_categories",
            "Category",
        ),
    ),
    own_figure=label_distribution,
    group="Data",
)


_PAIR = (Column("kind", "Kind of label"), "annotator", "compared_with")
_TRUST = (
    "Lines are 95 % intervals, none where fewer than 5 tasks differ. Agreement with released labels"
    " shows how far annotated labels can be trusted for tasks without released ones."
)


_MEASURES = (
    Column("precision", interval=True),
    Column("recall", interval=True),
    Column("f1", interval=True),
    Column("jaccard", interval=True),
    "n_annotated",
    "n_compared_with",
    "n_both",
    "n_tasks",
)


_AVERAGE_AGREEMENT = Figure(
    "annotation_agreement",
    "Agreement on average",
    "F1 of the annotator's labels beside the released ones, or beside another annotator's."
    f" {_TRUST}",
    (*_PAIR, Column("label", "Average"), *_MEASURES),
    # Under each label or average, a dot with its interval for each comparison.
    charts.intervals(
        "kind",
        label="label",
        value="f1",
        hollow="is_small",
        name="comparison",
        least=(0, 1),
    ),
    query="annotations/agreement",
    mart="annotation_agreement",
    parameters={"is_average": True},
    mark_note="A hollow dot rests on fewer than 50 tasks.",
    essential=["annotator", "compared_with", "f1", "n_both", "n_tasks"],
    boards=["kind", "label"],
)
_LABEL_AGREEMENT = replace(
    _AVERAGE_AGREEMENT,
    name="annotation_labels",
    title="Agreement on each label",
    says=f"The same for each label. {_TRUST}",
    shows=(*_PAIR, "label", *_MEASURES),
    parameters={"is_average": False},
)


ANNOTATIONS = Page(
    "annotations",
    "Annotations",
    "The labels that models gave tasks (prbench annotate), and their agreement with released ones"
    " and each other.",
    pooled(
        Figure(
            "annotators",
            "Annotators",
            "Tasks that each annotator labelled. Breakdowns use these labels for tasks without a"
            " released one.",
            (
                Column("kind", "Kind of label"),
                "annotator",
                "n_tasks",
                "n_annotations",
                "n_failed",
                "n_released",
                "n_used",
                "cost_usd",
            ),
            essential=["kind", "annotator", "n_tasks", "n_annotations", "n_failed", "cost_usd"],
            query="annotations/annotators",
        ),
        _AVERAGE_AGREEMENT,
        _LABEL_AGREEMENT,
    ),
    has_judge=False,
    required_table="task_annotations",
    group="Data",
)


def _of_first_population(rows: Rows) -> Rows:
    """Return the rows of the largest population, which come first; the charts have only these."""
    return [row for row in rows if row["population_id"] == rows[0]["population_id"]]


_AGREEMENT = Figure(
    "review_agreement",
    "Agreement of people with criteria",
    "The share of criteria that people call well-constructed, accurate and relevant to the task,"
    " estimated for all criteria that the samples were drawn from: a criterion counts by one over"
    " its probability of being sampled, and with several reviewers by the share of them who agree.",
    (
        "breakdown",
        "label",
        Column("agreeing_share", few="is_small"),
        Interval("ci", "share"),
        "unweighted_share",
        "n_criteria",
        "n_reviews",
        "n_tasks",
        "n_population",
    ),
    charts.intervals(
        "breakdown",
        rows=_of_first_population,
        label="label",
        value="agreeing_share",
        hollow="is_small",
        least=(0.8, 1),
    ),
    empty="No person has reviewed a sampled criterion. prbench export review writes a sheet.",
    mark_note="A hollow dot is based on few tasks.",
    measured="is_small",
    essential=["label", "agreeing_share", "ci_low", "n_criteria", "n_reviews", "n_tasks"],
    boards=["breakdown"],
    query="reviews/review_agreement",
)
_REVIEWERS = Figure(
    "reviewer_agreement",
    "Agreement of reviewers",
    "The share of equal decisions in a check, by reviewers of the same criteria: two of them, or"
    " all of them.",
    (
        "review_check",
        "reviewer_a",
        "reviewer_b",
        Column("agreement", interval=True),
        Column("kappa", interval=True),
        Column("alpha", "Krippendorff's alpha", interval=True),
        "n",
        "n_tasks",
    ),
    query="reviews/reviewer_agreement",
    mart="reviewer_agreement",
    essential=["reviewer_a", "reviewer_b", "agreement", "n", "n_tasks"],
    boards=["review_check"],
)
_CHECKS = Figure(
    "review_checks",
    "Criteria that pass",
    "The share of reviewed criteria that pass each check of each reviewer. Models check whether a"
    " criterion is atomic (asks for one thing), objective, self-contained, consistent with its"
    " rubric, and not given away by the request.",
    (
        "reviewer",
        "kind",
        "review_check",
        "pass_share",
        "n_criteria",
        "n_tasks",
        Column("n_trials", "Repetitions"),
    ),
    charts.heat(
        subject="Checks by models",
        only=lambda row: row["kind"] == "model",
        x="review_check",
        y="reviewer",
        value="pass_share",
        domain=(0, 1),
        across=True,
        tips=["n_criteria"],
    ),
    essential=["reviewer", "kind", "review_check", "pass_share", "n_criteria", "n_tasks"],
    query="reviews/review_checks",
)
_PREDICTIONS = Figure(
    "review_predictions",
    "What checks predict",
    "How often graders disagree on criteria that fail a check, minus how often on those that pass"
    " it; the same for people who disagree with a criterion. An AUC of 0.5 is chance. Lines are 95"
    " % intervals over tasks, each by itself: of many checks some exclude 0 by chance.",
    (
        Column("outcome", "Disagreement of"),
        "reviewer",
        "review_check",
        "failing_rate",
        "passing_rate",
        Column("difference", few="is_small"),
        Interval("difference_ci", "signed"),
        Column("odds_ratio", interval=True),
        Column("auc", interval=True),
        "n_criteria",
        "n_failing",
        "n_tasks",
    ),
    charts.intervals(
        "outcome",
        required="difference",
        label="review_check",
        value="difference",
        name="reviewer",
        hollow="is_small",
        is_sorted=True,
        least=(0, 0),
    ),
    mark_note="A hollow dot is based on few tasks or few criteria.",
    query="reviews/review_predictions",
    mart="review_predictions",
    measured="is_small",
    essential=[
        "reviewer",
        "review_check",
        "failing_rate",
        "passing_rate",
        "difference",
        "difference_ci_low",
    ],
    boards=["outcome"],
)
_OBJECTIONS = Figure(
    "review_objections",
    "Criteria with objections",
    "Criteria that a person disagrees with or that fail a check, with the reasons and findings from"
    " verdicts: always met, never met, graders disagree, or suspect (its points correlate"
    " negatively with the rest of its task).",
    (
        "task_id",
        "title",
        "severity",
        "reviewer",
        "review_check",
        "explanation",
        "better_wording",
        "findings",
    ),
    parameters={"n_criteria": None},
    listed=lambda rows: rows[:100],
    essential=["task_id", "title", "review_check", "explanation"],
    query="reviews/review_objections",
)

REVIEW_FAILURES = Figure(
    "review_failures",
    "Failed reviews",
    "Reviews by models that failed, by cause.",
    ("reviewer", "status", Column("n", "Reviews")),
    query="reviews/review_failures",
)
"""A further figure of `prbench reviews`."""

REVIEWS = Page(
    "reviews",
    "Reviews",
    "The quality of the rubrics: people's agreement with criteria, and criteria that fail the"
    " checks of models.",
    pooled(_AGREEMENT, _REVIEWERS, _CHECKS, _PREDICTIONS, _OBJECTIONS),
    has_judge=False,
    required_table="criterion_reviews",
    group="Data",
)
