"""The overview: who leads, how surely, and what one should know before one quotes it."""

from tasks.report import charts
from tasks.report.figures import Column, Figure, Page, Panel, Rows

_BOARD = (
    Column("judging", "Judge"),
    Column("split", "Split"),
    Column("rank", "Rank", "count"),
    Column("model", "Model"),
    Column("mean_score", "Score", "score"),
    Column("ci_low", "from", "score", "95 % interval"),
    Column("ci_high", "to", "score", "95 % interval"),
    Column("mean_lower", "at least", "score", "Could be"),
    Column("mean_upper", "at most", "score", "Could be"),
    Column("n_tasks", "Tasks", "count"),
    Column("n_tasks_wanted", "Wanted", "count"),
    Column("coverage", "Coverage", "share"),
    Column("n_trials", "Trials", "count"),
    Column("met_share", "Criteria met", "share"),
    Column("mean_chars_alnum", "Characters", "count"),
    Column("cost_usd", "Cost", "usd"),
)


def by_split(rows: Rows) -> list[Panel]:
    """A chart of models with intervals for each split, the own hard selections last."""
    splits = dict.fromkeys((row["split"], row["is_own_hard"]) for row in rows)
    values = [row[bound] for row in rows for bound in ("ci_low", "ci_high", "mean_score") if row[bound] is not None]
    domain = (min(values), max(values)) if values else None
    return [
        Panel(
            f"{split}, own hard selection" if is_own_hard else split,
            charts.intervals(
                [row for row in rows if (row["split"], row["is_own_hard"]) == (split, is_own_hard)],
                sort="rank", domain=domain,
            ),
        )
        for split, is_own_hard in splits
    ]  # fmt: skip


OVERVIEW = Page(
    "index",
    "Overview",
    "Which model answers best, how surely, and what the figures rest on.",
    (
        Figure(
            "leaderboard",
            "Leaderboard",
            "Mean score (equation 2) with the 95 % interval for other tasks of the same kind, on full and hard splits "
            "(figures 1 and 5 of the paper). Only tasks complete for a model count; ranks compare the tasks that are "
            "complete for all.",
            _BOARD,
            by_split,
            is_table=True,
        ),
    ),
)
