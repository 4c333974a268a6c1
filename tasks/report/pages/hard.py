"""The hard subset: which tasks the models find hardest, how surely, and how the models do on them."""

from tasks.report.content.figures import INTERVAL, Column, Figure, Page
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
_TASK = (
    Column("field", "Field"),
    Column("rank", "Rank", "count"),
    Column("task_id", "Task", "task"),
    Column("topic", "Topic"),
    Column("mean_score", "Mean score", "score"),
    Column("from_border", "From the border", "signed"),
    Column("is_selected", "Selected", "yes"),
    Column("inclusion_probability", "Selected by", "share"),
    Column("is_border", "Chance decides", "yes"),
    Column("is_official", "In the official split", "yes"),
)

_SELECTIONS = Figure(
    "hard_selections",
    "What was selected",
    "The tasks of a field with the lowest mean score over a panel of models, under the judge that is configured "
    "first; the selection made last. Chosen from are the tasks with a complete trial of every model of the panel. The "
    "border lies between the easiest task inside and the hardest outside; chance decides where between 5 and 95 % of "
    "resampled panels select a task.",
    (
        Column("field", "Field"),
        Column("n_selected", "Tasks", "count", "Selected"),
        Column("n_chosen_from", "of", "count", "Selected"),
        Column("n_tasks", "admitted", "count", "Selected"),
        Column("highest_inside", "inside", "score", "Mean score at the border"),
        Column("lowest_outside", "outside", "score", "Mean score at the border"),
        Column("gap", "gap", "score", "Mean score at the border"),
        Column("n_border_inside", "inside", "count", "Chance decides"),
        Column("n_border", "in all", "count", "Chance decides"),
        Column("mean_inclusion", "Mean certainty inside", "share"),
        Column("n_models", "Models", "count"),
        Column("selected_at", "Selected at (UTC)", "time"),
    ),
    empty=_NONE,
    is_table=True,
    notes=panels_of_models,
)
_LEADERBOARD = Figure(
    "hard_leaderboard",
    "Leaderboard on the hard subset",
    "Mean $score on the tasks of the selection with the 95 % interval for other tasks of the same kind. "
    "The models of the panel chose these tasks by failing on them, so beside them a model that was not on the panel "
    "looks better than it is.",
    (
        Column("judging", "Judge"),
        Column("split", "Split"),
        Column("rank", "Rank", "count"),
        Column("model", "Model"),
        Column("mean_score", "Score", "score"),
        *INTERVAL,
        Column("rank_low", "from", "count", "Possible ranks"),
        Column("rank_high", "to", "count", "Possible ranks"),
        Column("mean_lower", "at least", "score", "Possible range"),
        Column("mean_upper", "at most", "score", "Possible range"),
        Column("is_small", "Few", "yes"),
        Column("n_tasks", "Tasks", "count"),
        Column("n_tasks_wanted", "Wanted", "count"),
        Column("coverage", "Coverage", "share"),
        Column("met_share", "Criteria met", "share"),
    ),
    leaderboard,
    empty=_NONE,
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
)
_BORDER = Figure(
    "hard_border",
    "The border",
    "The last tasks inside and the first ones outside, by how far their mean score is from the middle between both. "
    "Where bars are short, a task more or less says nothing.",
    _TASK,
    border,
    empty=_NONE,
    query="hard_tasks",
    listed=around_border,
)
_TOPICS = Figure(
    "hard_topics",
    "Which topics are hard",
    "Of each topic the share of its tasks, among those to choose from, that the selection took. Small topics vary a "
    "lot.",
    (
        Column("field", "Field"),
        Column("topic", "Topic"),
        Column("selected_share", "Selected", "share"),
        Column("n_selected", "Tasks", "count"),
        Column("n_chosen_from", "of", "count"),
        Column("mean_score", "Mean score", "score"),
    ),
    topics,
    breakdown="topic",
    empty="There is no hard subset, or it is not stored what it was chosen from.",
)
_OVERLAPS = Figure(
    "hard_overlaps",
    "What it shares with other selections",
    "Share of the selected tasks that another selection has too: the data set's own hard split (of its tasks those "
    "that could have been selected), earlier selections, and the selection that the panel without one model would "
    "have made. If leaving out one model changes much, the subset says more about that model than about the tasks.",
    (
        Column("field", "Field"),
        Column("kind", "Kind"),
        Column("compared_with", "Compared with"),
        Column("shared_share", "Shared", "share"),
        Column("n_shared", "in both", "count", "Tasks"),
        Column("n_selected", "here", "count", "Tasks"),
        Column("n_compared", "there", "count", "Tasks"),
        Column("jaccard", "Jaccard", "number"),
    ),
    overlaps,
    empty="There are no two selections to compare.",
)

HARD = Page(
    "hard",
    "Hard subset",
    "Which tasks the models find hardest, how surely, who chose them, and how the models do on them.",
    (_SELECTIONS, _LEADERBOARD, _TASKS, _BORDER, _TOPICS, _OVERLAPS),
)
