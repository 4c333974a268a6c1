"""The overview: the leaderboard with its uncertainty, and the latest changes."""

from tasks.figures import charts
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page
from tasks.figures.scope import side_by_side

WHOLE = {"breakdown": "all", "of_criteria": False}
"""The parameters of the query for a leaderboard without a breakdown."""


def judged_in_groups(rows: Rows) -> list[str]:
    """Return a note for each judge that decides several criteria in one call, with its neighbour effect if measured."""
    notes = {}
    for row in (row for row in rows if row.get("criteria_per_call")):
        effect, low, high = (row[f"neighbour_effect{end}"] for end in ("", "_ci_low", "_ci_high"))
        measured = "its neighbour effect was not measured (see prbench neighbours)"
        if effect is not None:
            ends = "" if low is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
            measured = f"compared with one by one, this changes the share met by {100 * effect:+.1f} points{ends}"
        judge = row["judge_config"]
        notes[judge] = f"{judge} decides up to {row['criteria_per_call']} criteria in one call; {measured}."
    return list(notes.values())


LEADERBOARD = Figure(
    "leaderboard",
    "Leaderboard",
    "Mean $score on each split, with its 95 % interval for other tasks of the same kind. A task's score is the mean "
    "over its complete trials. Ranks compare models on the tasks for which every ranked model has a complete trial, "
    "before a mean below 0 is clipped. Possible ranks are those that the intervals allow; a model is tied with the "
    "leader if it could be first. `prbench diff` can find a difference between models that are tied here. The $score "
    "of a response is $formula: points is the sum of the weights of the criteria that are met (half the weight of "
    "those partly met), positive and negative are the sums of all weights above and below 0.",
    columns(
        "judge_config split label rank model mean_score is_small ci_low ci_high hidden_mean_score hidden_ci_low "
        "hidden_ci_high rank_low rank_high mean_lower mean_upper n_tasks n_tasks_full n_tasks_wanted n_tasks_ranked "
        "coverage is_below_bar n_trials met_share mean_chars_alnum responses_usd verdicts_usd",
        mean_chars_alnum="Characters",
        verdicts_usd=("usd", "Cost: judging"),
    ),
    given={"is_hard": None, **WHOLE},
    listed=lambda rows: rows,
    notes=judged_in_groups,
)

OVERVIEW = Page(
    "index",
    "Overview",
    "The scores of the models, their certainty, and the data that they are based on.",
    (
        LEADERBOARD,
        Figure(
            "changes",
            "What changed",
            "Each model's shown vintage compared with its previous comparable one, by the same judge, on the tasks "
            "with a complete trial in both. A difference is significant if its p-value, corrected for all rows (Holm), "
            "is at most 0.05; the interval is not corrected.",
            columns(
                "judge_config model split difference ci~ p_adjusted is_significant earlier later earlier_mean "
                "later_mean n_tasks"
            ),
            charts.intervals("split", value="difference", zero=True),
            empty="No model has two vintages that the same judge decided in the same way.",
        ),
        Figure(
            "changed_tasks",
            "Where it changed",
            "The tasks behind each significant change: for each model the ten that changed most in the same direction.",
            columns("judge_config model task_id difference topic earlier later earlier_score later_score"),
            listed=side_by_side(*(("model_label", "model_config_hash", which) for which in ("earlier", "later"))),
        ),
    ),
    template="index.html",
)
