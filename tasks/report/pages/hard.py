"""The hard subset: which tasks the models find hardest, how surely, and how the models do on them."""

from tasks.report.content.columns import columns
from tasks.report.content.figures import Figure, Page
from tasks.report.pages.hard_plots import (
    around_border,
    border,
    certainty,
    leaderboard,
    members_and_border,
    overlaps,
    panels_of_models,
    topics,
)

_NONE = (
    "No hard subset of these tasks has been selected. prbench select-hard selects one, and so does prbench run; a "
    "report of some splits shows a selection if all tasks that it took or chose from are in them."
)
_TASK = columns(
    "field rank task_id topic mean_score from_border is_selected inclusion_probability is_border is_official",
    mean_score="Mean score",
)

_SELECTIONS = Figure(
    "hard_selections",
    "What was selected",
    "The tasks of a field with the lowest mean score over a panel of models, under the judge that is configured "
    "first; the selection made last. Chosen from are the tasks with a complete trial of every model of the panel. The "
    "border lies between the easiest task inside and the hardest outside; chance decides where between 5 and 95 % of "
    "resampled panels select a task.",
    (
        *columns("field"),
        *columns("n_selected n_chosen_from n_tasks", "Selected", n_tasks="admitted"),
        *columns("highest_inside lowest_outside gap n_border_inside n_border mean_inclusion n_models selected_at"),
    ),
    empty=_NONE,
    is_table=True,
    notes=panels_of_models,
    query="hard/selections",
)
_LEADERBOARD = Figure(
    "hard_leaderboard",
    "Leaderboard on the hard subset",
    "Mean $score on the tasks of the selection with the 95 % interval for other tasks of the same kind. "
    "The models of the panel chose these tasks by failing on them, so beside them a model that was not on the panel "
    "looks better than it is.",
    columns(
        "judging split rank model mean_score ci_low ci_high raw_mean_score raw_ci_low raw_ci_high "
        "rank_low rank_high mean_lower mean_upper is_small n_tasks n_tasks_wanted coverage met_share"
    ),
    leaderboard,
    empty=_NONE,
    query="hard/leaderboard",
)
_TASKS = Figure(
    "hard_tasks",
    "How surely each task belongs there",
    "Each dot is a task: how hard it is, and the share of 10,000 resampled panels (models, and trials within them) "
    "that select it. Above the upper dashed line a task is in whatever the panel, below the lower one it is out; in "
    "between other models might have chosen otherwise. The table lists the members, and the tasks outside that chance "
    "decided on.",
    _TASK,
    certainty,
    empty=_NONE,
    listed=members_and_border,
    query="hard/tasks",
)
_BORDER = Figure(
    "hard_border",
    "The border",
    "The last tasks inside and the first ones outside, by how far their mean score is from the middle between both. "
    "Where bars are short, a task more or less says nothing.",
    _TASK,
    border,
    empty=_NONE,
    query="hard/tasks",
    listed=around_border,
)
_TOPICS = Figure(
    "hard_topics",
    "Which topics are hard",
    "Of each topic the share of its tasks, among those to choose from, that the selection took. Small topics vary a "
    "lot.",
    columns("field topic selected_share n_selected n_chosen_from mean_score", mean_score="Mean score"),
    topics,
    breakdown="topic",
    empty="There is no hard subset, or it is not stored what it was chosen from.",
    query="hard/topics",
)
_OVERLAPS = Figure(
    "hard_overlaps",
    "What it shares with other selections",
    "Share of the selected tasks that another selection has too: the data set's own hard split (of its tasks those "
    "that could have been selected), earlier selections, and the selection that the panel without one model would "
    "have made. If leaving out one model changes much, the subset says more about that model than about the tasks.",
    (
        *columns("field kind compared_with shared_share"),
        *columns("n_shared n_selected n_compared", "Tasks", n_selected="here"),
        *columns("jaccard"),
    ),
    overlaps,
    empty="There are no two selections to compare.",
    query="hard/overlaps",
)

HARD = Page(
    "hard",
    "Hard subset",
    "Which tasks the models find hardest, how surely, who chose them, and how the models do on them.",
    (_SELECTIONS, _LEADERBOARD, _TASKS, _BORDER, _TOPICS, _OVERLAPS),
)
