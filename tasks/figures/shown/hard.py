"""The page of the hard subset: the selected tasks, the stability of the selection, and the scores on it."""

from tasks.figures import charts
from tasks.figures.charts import names_in_order
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page
from tasks.figures.shown.overview import WHOLE

_MOST_AROUND = 8
"""Number of drawn tasks on either side of the border."""
_SIDES = ("inside", "outside")


def around_border(rows: Rows) -> Rows:
    """Return the last selected tasks and the first ones that are not selected."""
    near = []
    for field in names_in_order(rows, "field"):
        inside = [row for row in rows if row["field"] == field and row["is_selected"]]
        outside = [row for row in rows if row["field"] == field and not row["is_selected"]]
        near += [*inside[-_MOST_AROUND:], *outside[:_MOST_AROUND]]
    return near


_TASK = columns(
    "field rank task_id topic mean_score from_border is_selected inclusion_probability is_border is_official",
    mean_score="Mean score",
)

_SELECTIONS = Figure(
    "hard_selections",
    "Selection",
    "The latest selection: the tasks of a field with the lowest mean score over a panel of models, by the judge that "
    "is configured first. The border lies between the easiest selected task and the hardest one that was not selected. "
    "Chance decides on a task if between 5 and 95 % of resampled panels select it.",
    columns(
        "field", "Selected: n_selected n_chosen_from n_tasks",
        "highest_inside lowest_outside gap n_border_inside n_border mean_inclusion n_models selected_at",
        n_tasks="admitted",
    ),
    empty="No hard subset of all these tasks has been selected; prbench select-hard selects one.",
    notes=lambda rows: [f"{row['field']} was chosen with the panel {', '.join(row['panel'])}." for row in rows],
)  # fmt: skip
_LEADERBOARD = Figure(
    "hard_leaderboard",
    "Leaderboard on the hard subset",
    "Mean $score on the selected tasks. They were selected because the models of the panel score low on them, so other "
    "models look better than they are.",
    columns(
        "judge_config split rank model mean_score is_small ci_low ci_high hidden_mean_score hidden_ci_low "
        "hidden_ci_high rank_low rank_high mean_lower mean_upper n_tasks n_tasks_wanted coverage met_share"
    ),
    charts.intervals("split"),
    query="leaderboard",
    given={"is_hard": True, **WHOLE},
)
_TASKS = Figure(
    "hard_tasks",
    "Certainty of the selection",
    "Each dot is a task: its mean score, and the share of 10,000 resampled panels (models, and trials within them) "
    "that select it. Between the dashed lines, other models might have selected otherwise.",
    _TASK,
    charts.dots(
        "field", known="inclusion_probability", x="mean_score", y="inclusion_probability",
        colour="side", names=_SIDES, bounds=(0.05, 0.95), tips="task_id topic rank mean_score inclusion_probability",
    ),
    listed=lambda rows: [row for row in rows if row["is_selected"] or row["is_border"]],
    query="hard/tasks",
)  # fmt: skip
_BORDER = Figure(
    "hard_border",
    "The border",
    "The selected tasks next to the border and the next ones outside. Where bars are short, their order means little.",
    _TASK,
    charts.bars(
        "field", rows=around_border, known="from_border", name="task_id",
        value="from_border", colour="side",
    ),
    query="hard/tasks",
    listed=around_border,
)  # fmt: skip
_TOPICS = Figure(
    "hard_topics",
    "Which topics are hard",
    "The selected share of each topic's tasks, among tasks that could have been selected. Small topics vary a lot.",
    columns("field topic selected_share n_selected n_chosen_from mean_score", mean_score="Mean score"),
    charts.bars("field", name="topic", value="selected_share"),
    breakdown="topic",
)  # fmt: skip
_OVERLAPS = Figure(
    "hard_overlaps",
    "Overlap with other selections",
    "The share of the selected tasks that are also in another selection: the data set's own hard split (only its tasks "
    "that could have been selected), earlier selections, and the selection by the panel without one of its models.",
    columns(
        "field kind compared_with shared_share", "Tasks: n_shared n_selected n_compared", "jaccard", n_selected="here"
    ),
    charts.bars("field", name="other", value="shared_share"),
)  # fmt: skip

HARD = Page(
    "hard",
    "Hard subset",
    "The tasks with the lowest scores, the certainty of their selection, its panel, and the models' scores on them.",
    (_SELECTIONS, _LEADERBOARD, _TASKS, _BORDER, _TOPICS, _OVERLAPS),
)
