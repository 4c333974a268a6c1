"""The overview (the leaderboard with its uncertainty, and the latest changes), and the page of the
hard subset.

The latter has the selected tasks, the stability of the selection, and the scores on it.
"""

from dataclasses import replace

from tasks.figures import charts
from tasks.figures.addresses import side_by_side
from tasks.figures.figure import MEAN_SCORE, Column, ColumnGroup, Figure, Interval, Rows, grouped
from tasks.figures.page import Page
from tasks.figures.shown.leaderboard import LEADERBOARD, POSSIBLE, WHOLE
from tasks.rules.hardness import BORDER

OVERVIEW = Page(
    "index",
    "Overview",
    "The scores of the models, their certainty, and the data that they are based on.",
    (
        LEADERBOARD,
        Figure(
            "changes",
            "What changed",
            "Each model's shown vintage compared with its previous comparable one, by the same"
            " judge, on the tasks with a complete trial in both. A difference is significant if its"
            " p-value, corrected for all rows (Holm), is at most 0.05; the interval is not"
            " corrected.",
            (
                "judge_config",
                "model",
                "split",
                "difference",
                Interval("ci", "signed"),
                "p_adjusted",
                "is_significant",
                "earlier",
                "later",
                "earlier_mean",
                "later_mean",
                "n_tasks",
            ),
            charts.intervals("split", value="difference", zero=True),
            empty="No model has two vintages with the same judge configuration.",
            essential=["model", "difference", "ci_low", "p_adjusted", "earlier", "later"],
            query="overview/changes",
        ),
        Figure(
            "changed_tasks",
            "Where it changed",
            "The tasks behind each significant change: for each model the ten that changed most in"
            " the same direction.",
            (
                "judge_config",
                "model",
                "task_id",
                "difference",
                "topic",
                "earlier",
                "later",
                "earlier_score",
                "later_score",
            ),
            listed=side_by_side(
                ("model_label", "model_config_hash", "earlier"),
                ("model_label", "model_config_hash", "later"),
            ),
            essential=["model", "task_id", "difference", "earlier_score", "later_score"],
            query="overview/changed_tasks",
        ),
    ),
    template="index.html",
)


_N_NEAR_BORDER = 8
"""Number of drawn tasks on either side of the border."""


def around_border(rows: Rows) -> Rows:
    """Return the last selected tasks and the first ones that are not selected.

    The rows are in the order of the query: those of a field from the hardest on.
    """
    near_rows = []
    for field_rows in grouped(rows, "field").values():
        selected_rows = [row for row in field_rows if row["is_selected"]]
        other_rows = [row for row in field_rows if not row["is_selected"]]
        near_rows += selected_rows[-_N_NEAR_BORDER:] + other_rows[:_N_NEAR_BORDER]
    return near_rows


_SELECTIONS = Figure(
    "hard_selections",
    "Selection",
    "The latest selection: the tasks of a field with the lowest mean score over a panel of models,"
    " by the judge that is configured first. The border lies between the easiest selected task and"
    " the hardest one that was not selected. Chance decides on a task if between 5 and 95 % of"
    " resampled panels select it.",
    (
        "field",
        ColumnGroup("Selected", ["n_selected", "n_chosen_from", Column("n_tasks", "admitted")]),
        "highest_inside",
        "lowest_outside",
        "gap",
        "n_border_inside",
        "n_border",
        "mean_inclusion",
        "n_models",
        "selected_at",
    ),
    empty="No hard subset of all these tasks has been selected; prbench select-hard selects one.",
    notes=lambda rows: [
        f"{row['field']} was chosen with the panel {', '.join(row['panel'])}." for row in rows
    ],
    essential=["field", "n_selected", "n_chosen_from", "gap", "n_border", "n_models"],
    query="hard/hard_selections",
)
_HARD_LEADERBOARD = Figure(
    "hard_leaderboard",
    "Leaderboard on the hard subset",
    "Mean $score on the selected tasks. They were selected because the models of the panel score"
    " low on them, so other models look better than they are.",
    (
        "judge_config",
        "split",
        "rank",
        "model",
        *MEAN_SCORE,
        *POSSIBLE,
        "n_tasks",
        "n_tasks_wanted",
        "coverage",
        "met_share",
    ),
    charts.intervals("split"),
    query="leaderboard",
    parameters={"is_hard": True, **WHOLE},
    essential=["rank", "model", "mean_score", "ci_low", "coverage", "met_share"],
)
_TASKS = Figure(
    "hard_tasks",
    "Certainty of the selection",
    "Each dot is a task: its mean score, and the share of 10,000 resampled panels (models, and"
    " trials within them) that select it. Between the dashed lines, other models might have"
    " selected otherwise.",
    (
        "field",
        "rank",
        "task_id",
        "topic",
        Column("mean_score", "Mean score"),
        "from_border",
        "is_selected",
        "inclusion_probability",
        "is_border",
        "is_official",
    ),
    charts.dots(
        "field",
        required="inclusion_probability",
        x="mean_score",
        y="inclusion_probability",
        colour="side",
        names=("inside", "outside"),
        bounds=BORDER,
        tips=["task_id", "topic", "rank", "mean_score", "inclusion_probability"],
    ),
    listed=lambda rows: [row for row in rows if row["is_selected"] or row["is_border"]],
    query="hard/tasks",
    essential=["rank", "task_id", "topic", "mean_score", "inclusion_probability", "is_selected"],
    boards=["field"],
)
_BORDER = replace(
    _TASKS,
    name="hard_border",
    title="The border",
    says="The selected tasks next to the border and the next ones outside. Where bars are short,"
    " their order means little.",
    charts=charts.bars(
        "field",
        rows=around_border,
        required="from_border",
        name="task_id",
        value="from_border",
        colour="side",
    ),
    listed=around_border,
)
_TOPICS = Figure(
    "hard_topics",
    "Which topics are hard",
    "The selected share of each topic's tasks, among tasks that could have been selected. Small"
    " topics vary a lot.",
    (
        "field",
        "topic",
        "selected_share",
        "n_selected",
        "n_chosen_from",
        Column("mean_score", "Mean score"),
    ),
    charts.bars("field", name="topic", value="selected_share"),
    breakdown="topic",
    boards=["field"],
    query="hard/hard_topics",
)
_OVERLAPS = Figure(
    "hard_overlaps",
    "Overlap with other selections",
    "The share of the selected tasks that are also in another selection: the data set's own hard"
    " split (only its tasks that could have been selected), earlier selections, and the selection"
    " by the panel without one of its models.",
    (
        "field",
        "kind",
        "compared_with",
        "shared_share",
        ColumnGroup("Tasks", ["n_shared", Column("n_selected", "here"), "n_compared"]),
        "jaccard",
    ),
    charts.bars("field", name="other", value="shared_share"),
    boards=["field"],
    query="hard/hard_overlaps",
)

HARD = Page(
    "hard",
    "Hard subset",
    "The tasks with the lowest scores, the certainty of their selection, its panel, and the models'"
    " scores on them.",
    (_SELECTIONS, _HARD_LEADERBOARD, _TASKS, _BORDER, _TOPICS, _OVERLAPS),
)
