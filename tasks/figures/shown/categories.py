"""The pages of categories and capabilities: where models are strong and weak.

Categories are those of criteria and tasks, with severe mistakes. Capabilities have confirmed
weaknesses, and trees, level by level, with scores and criteria.
"""

from tasks.figures import charts
from tasks.figures.addresses import task_address
from tasks.figures.figure import (
    BY_LABEL,
    MEAN_SCORE,
    Chart,
    Charts,
    Column,
    ColumnGroup,
    Figure,
    Interval,
    Row,
    Rows,
    grouped,
    pooled,
    table_columns,
)
from tasks.figures.page import Breakdown, Page
from tasks.figures.scope import Scope


def _met(subject: str, *, is_detrimental: bool) -> Charts:
    """Declare charts of the share of criteria that are met, for each split: of desired or of
    undesired criteria.
    """
    return charts.intervals(
        "split",
        subject,
        only=lambda row: row["is_detrimental"] is is_detrimental,
        label="severity",
        name="model",
        value="met_share",
        ends="met_ci",
        hollow="is_met_small",
        from_zero=True,
    )


CRITICAL = Figure(
    "critical",
    "Critical criteria missed, critical mistakes made",
    "The share of critically important criteria that the responses miss, and of critically"
    " detrimental criteria (mistakes) that they meet, with 95 % intervals over tasks. Less is"
    " better.",
    (
        "judge_config",
        "split",
        "model",
        Column("missed_share", few="is_critical_small"),
        Interval("missed_ci"),
        "n_critical",
        "critical_coverage",
        Column("mistake_share", few="is_mistake_small"),
        Interval("mistake_ci"),
        "n_mistakes_possible",
        "mistake_coverage",
        "responses_with_mistake_share",
        "n_responses_at_risk",
    ),
    (
        charts.intervals(
            "split",
            "Critical criteria missed",
            value="missed_share",
            ends="missed_ci",
            from_zero=True,
            hollow="is_critical_small",
        ),
        charts.intervals(
            "split",
            "Critical mistakes made",
            value="mistake_share",
            ends="mistake_ci",
            from_zero=True,
            hollow="is_mistake_small",
        ),
    ),
    breakdown="severity",
    essential=["model", "missed_share", "mistake_share", "responses_with_mistake_share"],
    query="categories/critical",
    mart="severity_leaderboard",
)
SEVERITIES = Figure(
    "severities",
    "All severities",
    "The share of criteria met, by severity, with 95 % intervals over tasks; each criterion counts"
    " once. A detrimental criterion is met if the response makes that mistake, so less is better"
    " there.",
    (
        "judge_config",
        "split",
        "severity",
        "model",
        Column("met_share", "Met", few="is_met_small"),
        Interval("met_ci"),
        "n_judged",
        "n_tasks",
        "n_tasks_wanted",
        "coverage",
    ),
    (_met("Criteria met", is_detrimental=False), _met("Mistakes made", is_detrimental=True)),
    breakdown="severity",
    essential=["model", "met_share", "met_ci_low", "n_judged", "coverage"],
    boards=["judge_config", "split", "severity"],
    query="categories/severities",
)


_MOST_DOTS = 12
"""Largest number of labels that are drawn as dots with intervals; more are drawn as a map."""

_MAP = charts.heat(
    "split",
    x="model",
    y="label",
    value="mean_score",
    marked="is_small",
    tips=["ci_low", "ci_high", "n_tasks"],
)
"""A line for each label, a column for each model."""
_DOTS = charts.intervals("split", label="label", name="model", hollow="is_small")
"""Under each label a dot with its interval for each model."""


def _fitting(rows: Rows) -> list[Chart]:
    """Return dots with intervals if there are few labels, else a map."""
    n_labels = len(grouped(rows, "label"))
    return _DOTS(rows) if n_labels <= _MOST_DOTS else _MAP(rows)


def own_breakdown(breakdown: Breakdown, name: str = "", label: str = "") -> Figure:
    """Return a figure of the tasks or criteria under each label of a breakdown.

    `name` is the figure's, `label` the heading of the labels; empty for the usual ones.
    """
    score = "$score on the tasks"
    if breakdown.of_criteria:
        score = "$criteria_score ($criteria_formula) over the criteria"
    return Figure(
        name or f"breakdown_{breakdown.kind}",
        breakdown.title,
        f"Mean {score} with each label, the easiest first; a task or criterion with several labels"
        " counts under each.",
        (
            "judge_config",
            "split",
            Column("label", label or breakdown.title),
            "rank",
            "model",
            *MEAN_SCORE,
            "n_tasks",
            "n_tasks_wanted",
            "coverage",
        ),
        _fitting,
        essential=["rank", "model", "mean_score", "ci_low", "n_tasks", "coverage"],
        boards=BY_LABEL,
        query="leaderboard",
        mark_note=(
            "A hollow dot or an asterisk marks a mean on fewer than 50 tasks, or with fewer than 10"
            " that differ from the most common value: its interval may cover less than 95 %."
        ),
        breakdown=breakdown.kind,
        parameters={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
    )


def _failed(subject: str, value: str) -> Charts:
    """Declare maps of a share of criteria that are not met, for each split."""
    return charts.heat(
        "split",
        subject,
        x="model",
        y="label",
        value=value,
        least=(0, 0),
        tips=["n_failed", "n_decided"],
    )


FAILURES = Figure(
    "failures",
    "Criteria not met",
    "A criterion with a positive weight counts here if it is not met at all, one with a negative"
    " weight (a mistake) if it is fully met. The first map shows the share of a category's decided"
    " criteria that count, the second each category's share of all such criteria of the model.",
    (
        "judge_config",
        "split",
        Column("label", "Category"),
        "model",
        "failure_rate",
        "failure_share",
        ColumnGroup("Criteria", [Column("n_failed", "Not met"), "n_decided"]),
    ),
    (
        _failed("Criteria not met", "failure_rate"),
        _failed("Share of all that are not met", "failure_share"),
    ),
    breakdown="category",
    boards=BY_LABEL,
    query="categories/failures",
    mart="failure_rates",
)


CATEGORIES = Page(
    "categories",
    "Categories",
    "Where the models are strong and weak: by category of the criteria, by severity, and by kind of"
    " task.",
    (
        own_breakdown(
            Breakdown("category", "Rubric categories", of_criteria=True), "categories", "Category"
        ),
        FAILURES,
        CRITICAL,
        SEVERITIES,
        own_breakdown(Breakdown("topic", "Topics"), "topics", "Topic"),
        own_breakdown(
            Breakdown("decision_type", "Decision types"), "decision_types", "Decision type"
        ),
        own_breakdown(
            Breakdown("economic_pathway", "Economic pathways"),
            "economic_pathways",
            "Economic pathway",
        ),
        own_breakdown(Breakdown("expert", "Who asks"), "experts"),
        own_breakdown(Breakdown("turns", "Length of the conversation"), "turns", "User turns"),
        own_breakdown(Breakdown("reference_texts", "Reference texts"), "reference_texts"),
    ),
    n_chosen=6,
    own_figure=own_breakdown,
)


_SCORE = (
    Column("value", "Score", "score", few="is_small"),
    Interval("ci"),
    "n_tasks",
    "n_criteria",
    "n_decided",
)
_WEAKNESSES = Figure(
    "weaknesses",
    "Where models are weak",
    "Capabilities in which a model scores significantly lower than in its other criteria, or than"
    " another model. They are found on one half of the tasks and confirmed on the other, of which"
    " the figures are. p is corrected for all candidates of the model.",
    (
        "judge_config",
        "model",
        "capability",
        "field",
        "compared_with",
        Column("value", "here", "score", group="Score"),
        "compared_value",
        Column("gap", "Difference", "signed", few="is_small"),
        Interval("gap_ci", "signed"),
        "p_confirmed",
        "n_tasks",
        "parent_name",
    ),
    parameters={"model": None, "than": None},
    empty="No weakness is confirmed.",
    essential=["model", "capability", "value", "compared_value", "gap", "p_confirmed"],
    query="capabilities/weaknesses",
    mart="weaknesses",
)
_SCORES = Figure(
    "capability_scores",
    "All scores",
    "The score of each model in each node of the trees, with 95 % intervals over tasks.",
    ("judge_config", "field", "level", "capability", "model", *_SCORE),
    listed=lambda rows: [row for row in rows if row["level"] <= 1],
    essential=["level", "capability", "model", "value", "ci_low", "n_tasks"],
    boards=["judge_config", "field"],
    query="capabilities/capability_scores",
    mart="capability_scores",
)
CANDIDATES = Figure(
    "weakness_candidates",
    "Candidates for weaknesses",
    "Capabilities that a model was found weak in on one half of the tasks, and those that the other"
    " half confirmed.",
    (
        "compared_model",
        "n_candidates",
        "n_confirmed",
    ),
    parameters={"model": ""},
    required=["model"],
    query="capabilities/weakness_candidates",
)
EXAMPLES = Figure(
    "weakness_examples",
    "Not handled rightly",
    "The criteria of a model's weaknesses that it handled wrongly in every trial, those with the"
    " largest weight first.",
    (
        "capability",
        "task_id",
        "weight",
        "title",
    ),
    parameters={"model": "", "than": None, "n_examples": 2},
    required=["model"],
    query="capabilities/weakness_examples",
)
"""With the candidates, a further figure of `prbench weaknesses`."""
CAPABILITIES = Page(
    "capabilities",
    "Capabilities",
    "The abilities that criteria need, as a tree that a model described and named, and the models'"
    " scores in it.",
    pooled(_WEAKNESSES, _SCORES),
    template="capabilities/page.html",
    required_table="capability_trees",
)
SCORE_COLUMNS = table_columns("judge_config", "model", *_SCORE)
"""The columns of the table of a node."""


def trees(scope: Scope) -> dict[str, dict[str, list[Row]]]:
    """Return the nodes by parent, and the scores and listed criteria by node.

    There are no nodes in a report of some splits, because trees cover all tasks.
    """
    # The criteria that a leaf lists; the table `capability_members` has all.
    criteria = scope.rows("figures/capabilities/criteria", {"most_criteria": 25})
    for row in criteria:
        row["address"] = task_address(row["task_id"], criterion_id=row["criterion_id"])
    nodes = [] if scope.split_limit else scope.rows("figures/capabilities/nodes")
    return {
        "nodes": grouped(nodes, "parent_id"),
        "scores": grouped(scope.rows_of(_SCORES), "node_id"),
        "criteria": grouped(criteria, "node_id"),
    }
